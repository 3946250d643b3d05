"""Command-line flags: the parser of a verb, types of values, flags from configs, flags of the engine."""

import argparse
import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from expgen.cli.main import VERBS
from expgen.errors import InputError, check_choice
from expgen.settings import flag_of
from expgen.storage.hub import is_hub, parse_hub
from expgen.storage.location import Location, is_url
from expgen.storage.store import Store

if TYPE_CHECKING:
    from expgen.cluster.engine import Engine

MAX_NAME_BYTES = 255  # limit of file systems


class Parser(argparse.ArgumentParser):
    """Argument parser of one verb. Raises InputError for bad input; abbreviated flags are not accepted."""

    def __init__(self, verb: str, description: str = "", add_help: bool = True, **keywords: Any) -> None:
        """Create a parser, whose description is the summary in VERBS and then `description`."""
        summary = VERBS.get(verb, verb)
        description = f"{summary[:1].upper()}{summary[1:]}. {description}".strip()
        super().__init__(f"expgen {verb}", description=description, allow_abbrev=False, add_help=False, **keywords)
        self.common: frozenset[str] = frozenset()  # flags that --help shows; empty for all
        self.more = ""  # text that --help all adds to the description
        self.all_help = f"{self.prog} --help"  # the command that shows every flag
        if add_help:
            how: dict[str, Any] = {"nargs": "?", "const": "", "metavar": "all", "default": argparse.SUPPRESS}
            self.add_argument("-h", "--help", action=_Help, help="show this help; --help all: every flag", **how)

    def add(self, name: str, help: str, default: Any = None, group: Any = None, **keywords: Any) -> None:
        """Add a flag or argument; its default is appended to the help line.

        The default also decides the type: False makes a switch, a list a flag that may be repeated, an int or float a
        flag that accepts such numbers.
        """
        if default is False:
            keywords["action"] = "store_true"
        elif isinstance(default, list) and "nargs" not in keywords:
            keywords["action"] = "append"
        elif default not in (None, (), []):
            values = default if isinstance(default, tuple) else (default,)
            help += f" (default {','.join(f'{value:g}' if type(value) is float else str(value) for value in values)})"
            if type(default) in NUMBER_TYPES:
                keywords = {"type": NUMBER_TYPES[type(default)], **keywords}
        (group or self).add_argument(name, default=default, help=help, **keywords)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message.removeprefix('argument ')}; see {self.all_help}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Convert one value of a flag; argparse's own error would not name the accepted values."""
        kind = action.type
        if not callable(kind):
            return super()._get_value(action, arg_string)
        try:
            return kind(arg_string)
        except InputError as error:  # already names the accepted values
            raise type(error)(f"{_flag_name(action)}: {error}") from None
        except (TypeError, ValueError):
            accepted = "a number" if kind is float else getattr(kind, "__name__", "another value")
            raise InputError(f"{_flag_name(action)} is {arg_string!r}; accepted: {accepted}") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None:
            check_choice(_flag_name(action), value, action.choices)


class _Help(argparse.Action):
    """Prints the help and exits."""

    def __call__(self, parser: Any, namespace: object, value: Any, option_string: str | None = None) -> None:
        if value and check_choice("--help", value, ("all",)):
            parser.description = f"{parser.description} {parser.more}".strip()
        elif parser.common:
            for action in parser._actions:
                if action is not self and action.option_strings and not parser.common & set(action.option_strings):
                    action.help = argparse.SUPPRESS
        parser.print_help()
        sys.stdout.flush()  # raises here if the pipe is closed
        parser.exit()


def _flag_name(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)


def whole_number(text: str) -> int:
    """Parse `25000000`, `25_000_000`, `25e6`, `25000k` (or `25000K`) or `25M`."""
    scale = {"k": 10**3, "K": 10**3, "M": 10**6}.get(text[-1:], 1)
    digits = text[:-1] if scale > 1 else text
    try:
        return int(digits) * scale
    except ValueError:
        value = float(digits) * scale
        if not value.is_integer():
            raise
        return int(value)


def list_of(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Return a parser of comma-separated numbers."""

    def parse(text: str) -> tuple[Any, ...]:
        return tuple(kind(part) for part in text.split(","))

    parse.__name__ = "numbers, as 0.2,0.5" if kind is float else "whole numbers, as 1,2,3"  # for error messages
    return parse


def folder(text: str) -> Path:
    """Parse a path; URLs are not accepted, since Path would make a folder `s3:` of one."""
    if is_url(text):
        raise ValueError(text)
    return _path(text)


def location(text: str) -> Location:
    """Parse a folder, or a URL that other processes can open."""
    if not is_url(text):
        return _path(text)
    if is_hub(text) or text.startswith("memory:"):
        reason = "is an agent, not a run" if is_hub(text) else "is lost with the process"
        raise InputError(f"{text} {reason}; accepted: a folder, or a URL as s3://BUCKET/RUN")
    Store(text)  # raises InputError if no driver can open it
    return text.rstrip("/")


def _path(text: str) -> Path:
    """Return a path; raise ValueError if it is none, and InputError if a name is too long for file systems."""
    if not text or "\0" in text:  # Path would make the working directory of an empty text
        raise ValueError(text)
    for name in Path(text).parts:
        if (size := len(os.fsencode(name))) > MAX_NAME_BYTES:
            raise InputError(f"{name:.40}… is a name of {size} bytes; accepted: at most {MAX_NAME_BYTES}")
    return Path(text)


def agent_location(text: str) -> Location:
    """Parse a location or the URL of an agent on the Hugging Face Hub."""
    if not is_hub(text):
        return location(text)
    parse_hub(text)
    return text.rstrip("/")


NUMBER_TYPES: dict[type, Callable[[str], Any]] = {int: whole_number, float: float}
whole_number.__name__ = "a whole number"  # for error messages
folder.__name__ = "a file or folder of this machine"
location.__name__ = "a folder or URL"
agent_location.__name__ = "a folder, file or URL"


def add_config_flags(
    parser: argparse.ArgumentParser, config: Any, title: str, leave_out: Iterable[str] = (), prefix: str = ""
) -> None:
    """Add a flag for each field of `config`; flags that are not given are absent from the namespace.

    Flags begin with `prefix`; the name without prefix is an alias unless another flag has it.
    """
    hints = get_type_hints(type(config))
    group = parser.add_argument_group(title)
    for field in dataclasses.fields(config):
        value, hint = getattr(config, field.name), hints[field.name]
        if field.name in leave_out or value is None or dataclasses.is_dataclass(value):
            continue
        keywords: dict[str, Any] = {"dest": prefix + field.name, "default": argparse.SUPPRESS}
        keywords["help"] = f"{field.metadata.get('help', field.name)} (default {value})".replace("%", "%%")
        if hint is bool:
            keywords["action"] = argparse.BooleanOptionalAction
        elif get_origin(hint) is Literal:
            keywords["choices"] = get_args(hint)
        else:
            keywords["type"] = NUMBER_TYPES.get(hint, str)
            keywords["metavar"] = {int: "N", float: "X"}.get(hint, "TEXT")
        bare, full = flag_of(field.name), flag_of(prefix + field.name)
        names = (full,) if bare == full or bare in parser._option_string_actions else (bare, full)
        group.add_argument(*names, **keywords)


def parse_options(pairs: Iterable[str]) -> dict[str, Any]:
    """Parse `["texture=0", "distribution_mode=hard"]`; values are bools, numbers or text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--option is {pair!r}; accepted: NAME=VALUE")
        options[name.replace("-", "_")] = _typed(text)
    return options


def _typed(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def add_engine_flags(parser: Parser) -> None:
    """Add --engine and the flags of a cluster."""
    from expgen.cluster.engine import ENGINES

    group = parser.add_argument_group("where it runs")
    parser.add("--engine", "run on this machine (local) or on a Ray cluster (ray)", "local", group, choices=ENGINES)
    address = "address of the Ray head, or auto (default RAY_ADDRESS, else a new cluster on this machine)"
    parser.add("--address", address, group=group, metavar="HOST:PORT")
    number = {"group": group, "type": float, "metavar": "N"}
    parser.add("--cpus-per-job", "CPUs that each job reserves (default: one GPU's share of a node)", **number)
    gpus = "GPUs that each job reserves; 0.5 runs two jobs on one GPU (default 1, or 0 without GPUs)"
    parser.add("--gpus-per-job", gpus, **number)


def pop_engine(arguments: dict[str, Any]) -> "Engine":
    """Remove the flags of the engine from `arguments` and return the engine."""
    from expgen.cluster.engine import TaskResources, make_engine

    resources = TaskResources(arguments.pop("cpus_per_job"), arguments.pop("gpus_per_job"))
    return make_engine(arguments.pop("engine"), arguments.pop("address"), resources)


def env_name(game: str | None, env: str | None) -> str | None:
    """Return the environment of GAME and --env, such as `procgen:maze`; None if both are missing.

    If --env names a family, such as `gymnasium`, GAME is an environment of that family.
    """
    from expgen.envs.make import full_name
    from expgen.envs.procgen import GAMES

    family, _, inside = (env or "").partition(":")
    if game is not None and env is not None and (inside or family not in ("procgen", "gymnasium", "envpool")):
        raise InputError(f"GAME is {game!r} but --env is {env!r}; accepted: one of them")
    if game is not None and env is not None:
        return full_name(f"{env.rstrip(':')}:{game}", "GAME")
    if env == "procgen":
        raise InputError(f"--env is 'procgen'; accepted with a GAME: {', '.join(GAMES)}")
    if game is not None:
        return full_name(game, "GAME")
    return None if env is None else full_name(env)
