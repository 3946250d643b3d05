"""A config from a YAML or JSON file: each key a flag of `expgen train`, and flags on the command line win over it.

Keys are flags' names (`entropy_coef` or `entropy-coef`). Settings may be grouped as in config.json (`network`,
`algorithm`, `reward`; what is below `explorer` are its flags), so that a run's config.json is such a file too.
"""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from expgen.cli.flags import Parser, folder
from expgen.cli.shared_flags import env_name
from expgen.envs.trust import check_trusted
from expgen.envs.wrappers import WRAPPERS, wrappers_text
from expgen.errors import InputError
from expgen.files import JSON_BYTES, read_bytes
from expgen.settings import flag_of

GROUPS = ("network", "algorithm", "reward")  # of config.json; their settings have no prefix
ENDINGS = (".json", ".yaml", ".yml")
NEVER = ("config", "help")  # flags that a file may not give


class ConfigFile:
    """What `--config` says, if it is there: values by the name of their flag."""

    def __init__(self, argv: Sequence[str]) -> None:
        first = Parser("train", add_help=False)
        first.add_argument("--config", type=folder)
        known, self.words = first.parse_known_args(argv)
        self.path: Path | None = known.config
        self.values = dict(_flat(_read(known.config), str(known.config))) if known.config else {}

    @property
    def early_words(self) -> list[str]:
        """What decides whose flags there are, before there is a parser."""
        named = [f"{flag_of(name)}={self.values[name]}" for name in ("algo", "preset", "run") if name in self.values]
        return [*named, *(["--resume"] if self.values.get("resume") is True else []), *self.words]

    def words_for(self, parser: Parser) -> list[str]:
        """All words as if they had been given on the command line; `parser` is that of the algorithm."""
        flags = {action.dest: action for action in parser._actions if action.option_strings}
        if self._names_environment(parser):
            self.values = {name: value for name, value in self.values.items() if name not in ("env", "game")}
        self._check_modules()
        words = []
        for name, value in self.values.items():
            if name == "game":
                words.append(_text(name, value))
            elif name == "options" and isinstance(value, Mapping):
                words += [f"--option={key}={_text(key, each)}" for key, each in value.items()]
            elif name not in flags or name in NEVER:
                near = difflib.get_close_matches(name, [*flags, "game", "options"], 1)
                hint = f"did you mean {near[0]!r}?" if near else "see expgen train --help all"
                raise InputError(f"{self.path} has the key {name!r}, which is no flag of expgen train; {hint}")
            elif name == "wrapper" and isinstance(value, list):
                words += [f"--wrapper={_text(name, each)}" for each in value]
            elif isinstance(value, bool):
                words += _switch(name, value, flags[name].option_strings)
            else:
                words.append(f"{flag_of(name)}={_text(name, value)}")
        return [*words, *self.words]

    def _names_environment(self, parser: Parser) -> bool:
        """Whether the command line says what to train on."""
        first = Parser("train", add_help=False)
        first.add_argument("--seed")  # which may be a list
        _, rest = first.parse_known_args(self.words)
        given, _ = parser.parse_known_args(rest)
        return given.game is not None or given.env is not None

    def _check_modules(self) -> None:
        """A file may be a stranger's: modules that it names are imported only if the user names them too."""
        options = self.values.get("options")
        options = dict(options) if isinstance(options, Mapping) else {}
        if "wrapper" in self.values:
            options[WRAPPERS] = wrappers_text(self.values["wrapper"])
        games, env = self.values.get("game"), self.values.get("env")
        for game in _text("game", games).split(",") if games else [None]:
            check_trusted(env_name(game, env and _text("env", env)) or "", options)


def _read(path: Path) -> Any:
    if path.suffix not in ENDINGS:
        raise InputError(f"--config is {str(path)!r}; accepted: a file that ends in {', '.join(ENDINGS)}")
    try:
        content = read_bytes(path, JSON_BYTES)
        data = json.loads(content) if path.suffix == ".json" else _yaml(content)
    except OSError as error:
        raise InputError(f"--config is {str(path)!r}: {error.strerror}; accepted: a file that can be read") from None
    except (ValueError, RecursionError) as error:
        line = " ".join(str(error).split())[:120]
        raise InputError(f"--config {path} is no {path.suffix[1:].upper()}: {line}") from None
    if isinstance(data, dict) and data.keys() == {"train", "spec"}:
        return data["train"]  # of a run
    return data


def _yaml(content: bytes) -> Any:
    import yaml

    try:
        return yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def _flat(data: Any, where: str, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by the names of their flags."""
    if not isinstance(data, Mapping):
        raise InputError(f"{where} is {data!r:.60}; accepted: names of flags with their values")
    for key, value in data.items():
        name = str(key).replace("-", "_")
        if name in GROUPS:
            yield from _flat(value, f"{where}: {name}", prefix)
        elif name == "explorer" and not prefix:
            yield from _flat(value or {}, f"{where}: {name}", "explorer_")
        else:
            yield prefix + name, value


def _switch(name: str, value: bool, flags: Sequence[str]) -> list[str]:
    off = f"--no-{flag_of(name).removeprefix('--')}"
    if value:
        return [flag_of(name)]
    return [off] if off in flags else []


def _text(name: str, value: Any) -> str:
    """As a word of the command line; lists as words with commas."""
    if isinstance(value, bool):
        return str(value).lower()
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(each, str | int | float) for each in values):
        raise InputError(f"{flag_of(name)} is {value!r:.60}; accepted: a text, a number or a list of them")
    return ",".join(map(str, values))
