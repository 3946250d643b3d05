"""A config from a YAML or JSON file: each key a flag of `expgen train`, and flags on the command line win over it.

Keys are flags' names (`entropy_coef` or `entropy-coef`). Settings may be grouped as in config.json (`network`,
`algorithm`, `reward`; what is below `explorer` are its flags), so that a run's config.json is such a file too. Several
runs by one command stand below `runs`, by name, each with what it has beside the keys of all.
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

GROUPS = ("network", "algorithm", "reward")  # of config.json; their settings have no prefix
ENDINGS = (".json", ".yaml", ".yml")
NEVER = ("config", "help")  # flags that a file may not give
RUNS = "runs"  # the key below which several runs stand
# flags that all runs of a command share
SHARED = ("device", "processes", "hang_seconds", "engine", "address", "cpus_per_job", "gpus_per_job")


def read_config_file(path: Path) -> dict[str, Any]:
    """What the file says: values by the name of their flag."""
    if path.suffix not in ENDINGS:
        raise InputError(f"--config is {str(path)!r}; accepted: a file that ends in {', '.join(ENDINGS)}")
    try:
        content = read_bytes(path, MAX_JSON_BYTES)
        data = json.loads(content) if path.suffix == ".json" else yaml.safe_load(content)
    except OSError as error:
        raise InputError(f"--config is {str(path)!r}: {error.strerror}; accepted: a file that can be read") from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        line = " ".join(str(error).split())[:120]
        raise InputError(f"--config {path} is no {path.suffix[1:].upper()}: {line}") from None
    if isinstance(data, dict) and data.keys() == {"train", "spec"}:
        data = data["train"]  # of a run
    return dict(_flat(data, str(path)))


def take_runs(path: Path, values: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The runs by name, each with the flags of its own, taken out of `values`; without `runs` one that has no name."""
    if RUNS not in values:
        return [("", {})]
    runs = values.pop(RUNS)
    if not isinstance(runs, Mapping) or not runs:
        raise InputError(f"{path}: {RUNS} is {_shown(runs)}; accepted: names with flags below each")
    found = []
    for name, own in runs.items():
        if not re.fullmatch(r"[\w.-]*\w", str(name)):
            raise InputError(f"{path}: {RUNS} has the name {_shown(name)}; accepted: letters, digits, '_', '-' and '.'")
        flags = dict(_flat({} if own is None else own, f"{path}: {name}"))
        if shared := [flag for flag in flags if flag in SHARED]:
            raise InputError(f"{path}: {name} has {shared[0]!r}, which all runs share; accepted: beside {RUNS}")
        found.append((str(name), flags))
    return found


def _flat(data: Any, where: str, prefix: str = "", is_group: bool = False) -> Iterator[tuple[str, Any]]:
    """Settings by the names of their flags. There are no groups in a group: in YAML one may stand in itself."""
    if not isinstance(data, Mapping):
        raise InputError(f"{where} is {_shown(data)}; accepted: names of flags with their values")
    for key, value in data.items():
        name = str(key).replace("-", "_")
        if name in GROUPS and not is_group:
            yield from _flat(value, f"{where}: {name}", prefix, is_group=True)
        elif name == "explorer" and not (prefix or is_group):
            yield from _flat(value or {}, f"{where}: {name}", "explorer_")
        else:
            yield prefix + name, value


def use_as_defaults(path: Path, values: Mapping[str, Any], parser: Parser, argv: Sequence[str]) -> None:
    """Make what the file `path` says defaults of `parser`, so that the words `argv` of the command line win.

    Where those say what to train on, the file's environment is not meant.
    """
    given, _ = parser.parse_known_args(argv)
    if given.game is not None or given.env is not None:
        values = {name: value for name, value in values.items() if name not in ("env", "game")}
    _check_modules(values)
    flags = {action.dest: action for action in parser._actions}
    for name, value in values.items():
        default: Any
        if name == "options" and isinstance(value, Mapping):
            name, default = "option", [f"{key}={as_text(key, each)}" for key, each in value.items()]
        elif name not in flags or name in NEVER:
            near = difflib.get_close_matches(name, [*flags, "options"], 1)
            hint = f"did you mean {near[0]!r}?" if near else "see expgen train --help all"
            raise InputError(f"{path} has the key {name!r}, which is no flag of expgen train; {hint}")
        elif isinstance(flags[name].default, list):  # a flag that may be given several times
            default = [as_text(name, each) for each in (value if isinstance(value, list) else [value])]
        elif flags[name].nargs == 0:
            if not isinstance(value, bool):
                raise InputError(f"{flag_of(name)} is {_shown(value)}; accepted: true or false")
            default = value
        else:
            default = as_text(name, value)  # which argparse reads as it does words
        parser.set_defaults(**{name: default})


def _check_modules(values: Mapping[str, Any]) -> None:
    """A file may be a stranger's: modules that it names are imported only if the user names them too."""
    options = values.get("options")
    options = dict(options) if isinstance(options, Mapping) else {}
    if "wrapper" in values:
        options[WRAPPERS] = wrappers_text(values["wrapper"])
    games, env = values.get("game"), values.get("env")
    for game in as_text("game", games).split(",") if games else [None]:
        check_trusted(env_name(game, env and as_text("env", env)) or "", options)


def as_text(name: str, value: Any) -> str:
    """A value as a word of the command line; lists as words with commas."""
    if isinstance(value, bool):
        return str(value).lower()
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(isinstance(each, str | int | float) for each in values):
        raise InputError(f"{flag_of(name)} is {_shown(value)}; accepted: a text, a number or a list of them")
    return ",".join(map(str, values))


def _shown(value: Any) -> str:
    """The beginning of what a file says, which in YAML may be far longer than the file."""
    return reprlib.repr(value)[:60]
