"""Flags: the parser of a verb, kinds of values, configs as flags (there is no second list), where work is done."""

import argparse
import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from expgen.errors import InputError, check_choice
from expgen.settings import flag_of
from expgen.storage.hub import is_hub, parse_hub
from expgen.storage.location import Location, is_url
from expgen.storage.store import Store

if TYPE_CHECKING:
    from expgen.cluster.engine import Engine

LONGEST_NAME = 255  # bytes of a file's or folder's name


class Parser(argparse.ArgumentParser):
    """Of one verb. Bad input is one line, raised like every other, and half a flag's name is bad input."""

    def __init__(self, verb: str, common: frozenset[str] = frozenset(), more: str = "", **keywords: Any) -> None:
        """`--help` shows the flags `common` alone, where any are named; `--help all` shows all, and `more` above."""
        super().__init__(prog=f"expgen {verb}", allow_abbrev=False, **{**keywords, "add_help": False})
        self.common, self.more = common, more
        if keywords.get("add_help", True):
            what = "show this page; --help all shows every flag" if common else "show this page"
            keywords = {"nargs": "?", "const": "", "metavar": "all", "dest": "help", "default": argparse.SUPPRESS}
            self.add_argument("-h", "--help", action=_Help, help=what, **keywords)

    def add(self, name: str, help: str, default: Any = None, group: Any = None, **keywords: Any) -> None:
        """A flag or argument with its line of help, to which the default is added.

        Numbers of the kind of `default` are accepted; where that is False it is a switch, and a flag whose default is a
        list may be given several times.
        """
        if default is False:
            keywords["action"] = "store_true"
        elif isinstance(default, list) and "nargs" not in keywords:
            keywords["action"] = "append"
        elif default not in (None, (), []):
            values = default if isinstance(default, tuple) else (default,)
            help += f" (default {','.join(f'{each:g}' if type(each) is float else str(each) for each in values)})"
            if type(default) in KINDS:
                keywords = {"type": KINDS[type(default)], **keywords}
        (group or self).add_argument(name, default=default, help=help, **keywords)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message.removeprefix('argument ')}; see {self.prog} --help")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """One value of a flag, as its type; argparse's own line would not say what is accepted."""
        kind = action.type
        if not callable(kind):
            return super()._get_value(action, arg_string)
        try:
            return kind(arg_string)
        except InputError as error:  # says itself what is accepted
            raise InputError(f"{_name_of(action)}: {error}") from None
        except (TypeError, ValueError):
            accepted = "a number" if kind is float else getattr(kind, "__name__", "another value")
            raise InputError(f"{_name_of(action)} is {arg_string!r}; accepted: {accepted}") from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Likewise for choices."""
        if action.choices is not None:
            check_choice(_name_of(action), value, action.choices)


class _Help(argparse.Action):
    """Prints the help page and ends."""

    def __call__(self, parser: Any, namespace: object, value: Any, option_string: str | None = None) -> None:
        if value and check_choice("--help", value, ("all",)):
            parser.description = f"{parser.description} {parser.more}".strip()
        elif parser.common:
            for action in parser._actions:
                if action is not self and action.option_strings and not parser.common & set(action.option_strings):
                    action.help = argparse.SUPPRESS
        parser.print_help()
        parser.exit()


def _name_of(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest)


def whole_number(text: str) -> int:
    """`25000000`, `25_000_000`, `25e6` or `25M`."""
    scale = {"k": 10**3, "M": 10**6}.get(text[-1:], 1)
    digits = text[:-1] if scale > 1 else text
    value = float(digits) * scale
    if not value.is_integer():
        raise ValueError(text)
    return int(digits.replace("_", "")) * scale if digits.replace("_", "").lstrip("-").isdigit() else int(value)


def list_of(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Numbers with commas between them."""

    def parse(text: str) -> tuple[Any, ...]:
        return tuple(kind(part) for part in text.split(","))

    parse.__name__ = "numbers, as 0.2,0.5" if kind is float else "whole numbers, as 1,2,3"  # refusals name it
    return parse


def folder(text: str) -> Path:
    """A path; a URL would silently become a folder `s3:` here."""
    if is_url(text):
        raise ValueError(text)
    return _path(text)


def location(text: str) -> Location:
    """A folder, or a URL that other processes can open too."""
    if not is_url(text):
        return _path(text)
    if is_hub(text) or text.startswith("memory:"):
        why = "holds an agent to play, not a run" if is_hub(text) else "is lost with the process"
        raise InputError(f"{text} {why}; accepted: a folder, or a URL as s3://BUCKET/RUN")
    Store(text)  # refuses what it cannot open
    return text.rstrip("/")


def _path(text: str) -> Path:
    """`text` as a path that a file system can have."""
    for name in Path(text).parts:
        if (size := len(os.fsencode(name))) > LONGEST_NAME:
            raise InputError(f"{name:.40}… is a name of {size} bytes; accepted: at most {LONGEST_NAME}")
    return Path(text)


def agent_location(text: str) -> Location:
    """As `location`, or an agent on the Hugging Face Hub."""
    if not is_hub(text):
        return location(text)
    parse_hub(text)
    return text.rstrip("/")


KINDS: dict[type, Callable[[str], Any]] = {int: whole_number, float: float}  # how flags of numbers are read
whole_number.__name__ = "a whole number"  # refusals name it
folder.__name__ = "a file or folder of this machine"


def add_config_flags(
    parser: argparse.ArgumentParser, config: Any, title: str, leave_out: Iterable[str] = (), prefix: str = ""
) -> None:
    """A flag for each field of `config`; a flag that is not given leaves no trace in the namespace.

    Flags begin with `prefix`; where no flag before has a field's bare name, that is another name of the same flag.
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
            keywords["type"] = KINDS.get(hint, str)
            keywords["metavar"] = {int: "N", float: "X"}.get(hint, "TEXT")
        bare, full = flag_of(field.name), flag_of(prefix + field.name)
        names = (full,) if bare == full or bare in parser._option_string_actions else (bare, full)
        group.add_argument(*names, **keywords)


def parse_options(pairs: Iterable[str]) -> dict[str, Any]:
    """`["texture=0", "distribution_mode=hard"]` → typed values: true, false, numbers, else text."""
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
    """--engine and what a cluster wants to know."""
    from expgen.cluster.engine import ENGINES

    group = parser.add_argument_group("where it runs")
    parser.add("--engine", "this machine or a Ray cluster", "local", group, choices=ENGINES)
    address = "the cluster's head, or auto (default RAY_ADDRESS, else this machine)"
    parser.add("--address", address, group=group, metavar="HOST:PORT")
    number = {"group": group, "type": float, "metavar": "N"}
    parser.add("--cpus-per-job", "CPUs that each job reserves (default one GPU's share of a node)", **number)
    parser.add("--gpus-per-job", "GPUs that each job reserves; 0.5 puts two jobs on one GPU", **number)


def pop_engine(arguments: dict[str, Any]) -> "Engine":
    """The engine that those flags describe, which are taken out of `arguments`."""
    from expgen.cluster.engine import TaskResources, make_engine

    share = TaskResources(arguments.pop("cpus_per_job"), arguments.pop("gpus_per_job"))
    return make_engine(arguments.pop("engine"), arguments.pop("address"), share)


def env_name(game: str | None, env: str | None) -> str | None:
    """`maze` → `procgen:maze`; with a family in --env GAME is a game of it; neither → None, which means the default."""
    from expgen.envs.make import full_name
    from expgen.envs.procgen import GAMES

    family, _, inside = (env or "").partition(":")
    if game and env and (inside or family not in ("procgen", "gymnasium", "envpool")):
        raise InputError(f"GAME is {game!r} but --env names one too: {env!r}; accepted: one of them")
    if game and env:
        return full_name(f"{env.rstrip(':')}:{game}", "GAME")
    if env == "procgen":
        raise InputError(f"--env is 'procgen'; accepted with a GAME: {', '.join(GAMES)}")
    if game or env:
        return full_name(game or env or "", "GAME" if game else "--env")
    return None
