"""Config files of `expgen train`: YAML or JSON with flags as keys. Flags on the command line override the file.

Keys are names of flags (`entropy_coef` or `entropy-coef`). Settings may be grouped as in config.json (`network`,
`algorithm`, `reward`, `replay`, `explorer`), so a run's config.json is a config file too. The key `runs` defines
several runs by name, each with flags of its own in addition to the common ones.
"""

import difflib
import json
import re
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from expgen.cli.flags import Parser, env_name
from expgen.envs.make import check_trusted
from expgen.envs.wrappers import WRAPPERS, wrappers_text
from expgen.errors import InputError
from expgen.files import MAX_JSON_BYTES, read_bytes
from expgen.settings import flag_of

GROUPS = ("network", "algorithm", "reward", "replay")  # their settings have no prefix
SUFFIXES = (".json", ".yaml", ".yml")
FORBIDDEN = ("config", "help")  # flags that a file may not set
RUNS = "runs"
# flags that all runs of a command share
SHARED = ("device", "processes", "hang_seconds", "engine", "address", "cpus_per_job", "gpus_per_job")


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the values of a config file by the names of their flags."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"--config is {str(path)!r}; accepted: a file that ends in {', '.join(SUFFIXES)}")
    try:
        content = read_bytes(path, MAX_JSON_BYTES)
        data = json.loads(content) if path.suffix == ".json" else yaml.safe_load(content)
    except OSError as error:
        raise InputError(f"--config is {str(path)!r}: {error.strerror}; accepted: a file that can be read") from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        line = " ".join(str(error).split())[:120]
        raise InputError(f"--config {path} is not valid {path.suffix[1:].upper()}: {line}") from None
    if isinstance(data, dict) and data.keys() == {"train", "spec"}:
        data = data["train"]  # config.json of a run
    return dict(_flatten(data, str(path)))


def pop_runs(path: Path, values: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Remove `runs` from `values` and return the name and flags of each; without `runs`, one run with an empty name."""
    if RUNS not in values:
        return [("", {})]
    runs = values.pop(RUNS)
    if not isinstance(runs, Mapping) or not runs:
        raise InputError(f"{path}: {RUNS} is {_short(runs)}; accepted: names, each with its flags")
    named = []
    for name, own in runs.items():
        if not re.fullmatch(r"[\w.-]*\w", str(name)):
            raise InputError(f"{path}: {RUNS} has the name {_short(name)}; accepted: letters, digits, '_', '-' and '.'")
        flags = dict(_flatten({} if own is None else own, f"{path}: {name}"))
        if shared := [flag for flag in flags if flag in SHARED]:
            raise InputError(f"{path}: {name} has {shared[0]!r}, which all runs share; accepted: outside {RUNS}")
        named.append((str(name), flags))
    return named


def _flatten(data: Any, where: str, prefix: str = "", is_group: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield settings by the names of their flags. Groups are not nested: in YAML a group could contain itself."""
    if not isinstance(data, Mapping):
        raise InputError(f"{where} is {_short(data)}; accepted: names of flags with their values")
    for key, value in data.items():
        name = str(key).replace("-", "_")
        if name in GROUPS and not is_group:
            yield from _flatten(value, f"{where}: {name}", prefix, is_group=True)
        elif name == "explorer" and not (prefix or is_group):
            yield from _flatten(value or {}, f"{where}: {name}", "explorer_")
        else:
            yield prefix + name, value


def set_file_defaults(path: Path, values: Mapping[str, Any], parser: Parser, argv: Sequence[str]) -> None:
    """Make the `values` of the file `path` the defaults of `parser`, so that `argv` overrides them.

    If `argv` names a game or environment, those of the file are ignored.
    """
    given, _ = parser.parse_known_args(argv)
    if given.game is not None or given.env is not None:
        values = {name: value for name, value in values.items() if name not in ("env", "game")}
    _check_modules(values)
    flags = {action.dest: action for action in parser._actions}
    for name, value in values.items():
        default: Any
        if name == "options" and isinstance(value, Mapping):
            name, default = "option", [f"{key}={as_text(key, option)}" for key, option in value.items()]
        elif name not in flags or name in FORBIDDEN:
            near = difflib.get_close_matches(name, [*flags, "options"], 1)
            hint = f"did you mean {near[0]!r}?" if near else "see expgen train --help all"
            raise InputError(f"{path} has the key {name!r}, which is not a flag of expgen train; {hint}")
        elif isinstance(flags[name].default, list):  # a flag that may be repeated
            default = [as_text(name, each) for each in (value if isinstance(value, list) else [value])]
        elif flags[name].nargs == 0:
            if not isinstance(value, bool):
                raise InputError(f"{flag_of(name)} is {_short(value)}; accepted: true or false")
            default = value
        else:
            default = as_text(name, value)  # argparse parses text defaults like arguments
        parser.set_defaults(**{name: default})


def _check_modules(values: Mapping[str, Any]) -> None:
    """Raise InputError if the file names a module that the user has not named: files are not trusted."""
    options = values.get("options")
    options = dict(options) if isinstance(options, Mapping) else {}
    if "wrapper" in values:
        options[WRAPPERS] = wrappers_text(values["wrapper"])
    games, env = values.get("game"), values.get("env")
    for game in as_text("game", games).split(",") if games else [None]:
        check_trusted(env_name(game, env and as_text("env", env)) or "", options)


def as_text(name: str, value: Any) -> str:
    """Return a value as a command-line word; lists are joined by commas."""
    if isinstance(value, bool):
        return str(value).lower()
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(isinstance(each, str | int | float) for each in values):
        raise InputError(f"{flag_of(name)} is {_short(value)}; accepted: a text, a number or a list of them")
    return ",".join(map(str, values))


def _short(value: Any) -> str:
    """Return the start of the repr of a value, which in YAML may be far longer than the file."""
    return reprlib.repr(value)[:60]
