"""Gymnasium wrappers by name, as `minigrid.wrappers:ImgObsWrapper` or `my_wrappers:Resize(size=64)`.

The option `wrappers` of an environment stores them as one text, innermost first, separated by `;`; config.json and
agent.json keep this text.
"""

import ast
import importlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from expgen.errors import InputError, error_line

WRAPPERS = "wrappers"  # name of the option
_WRAPPER = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)(?P<call>\(.*\))?", re.DOTALL)
_ACCEPTED = "accepted: MODULE:CLASS or MODULE:CLASS(NAME=VALUE, …), values as Python literals"


class Wrapper(NamedTuple):
    """One wrapper, parsed from its text."""

    module: str
    name: str
    arguments: dict[str, Any]


def wrappers_text(wrappers: Any) -> str:
    """Return the option's text for a list of texts, classes and functions, or for a text."""
    if isinstance(wrappers, str):
        return wrappers
    if not isinstance(wrappers, Iterable):
        raise InputError(f"wrappers is {wrappers!r}; {_ACCEPTED}, or a list of these or of classes")
    return "; ".join(_text(wrapper) for wrapper in wrappers)


def parse_wrappers(text: Any) -> list[Wrapper]:
    """Parse the option's text, without importing anything."""
    if not isinstance(text, str):
        raise InputError(f"wrappers is {text!r}; {_ACCEPTED}")
    return [_parse(part.strip()) for part in text.split(";")]


def _text(wrapper: Any) -> str:
    if isinstance(wrapper, str):
        return wrapper
    name = getattr(wrapper, "__qualname__", "")
    if not callable(wrapper) or not name.isidentifier():
        raise InputError(f"wrappers has {wrapper!r}; {_ACCEPTED}, or a class or function at the top of a module")
    return f"{wrapper.__module__}:{name}"


def _parse(text: str) -> Wrapper:
    match = _WRAPPER.fullmatch(text)
    if match is None:
        raise InputError(f"--wrapper is {text!r}; {_ACCEPTED}")
    try:
        call: Any = ast.parse(f"f{match['call'] or '()'}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
            raise ValueError
        arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise InputError(f"--wrapper is {text!r}; {_ACCEPTED}") from None
    return Wrapper(match["module"], match["name"], arguments)


def load_wrappers(text: Any) -> list[tuple[Wrapper, Any]]:
    """Parse the option's text and import the classes, whose modules must be trusted."""
    return [(wrapper, _load(wrapper)) for wrapper in parse_wrappers(text)]


def apply_wrappers(wrappers: list[tuple[Wrapper, Any]], env: Any, name: str) -> Any:
    """Wrap the game `env`; `name` names its environment in errors."""
    for wrapper, wrapper_class in wrappers:
        try:
            env = wrapper_class(env, **wrapper.arguments)
        except (TypeError, ValueError, AssertionError) as error:
            raise InputError(f"--wrapper {wrapper.name} does not fit {name!r}: {error_line(error)}") from error
    return env


def _load(wrapper: Wrapper) -> Any:
    what = f"--wrapper is '{wrapper.module}:{wrapper.name}'"
    try:
        found = getattr(importlib.import_module(wrapper.module), wrapper.name, None)
    except (Exception, SystemExit) as error:  # user code may raise anything; --debug shows the traceback
        raise InputError(f"{what}; accepted: a module that can be imported ({error_line(error)})") from error
    package = wrapper.module.partition(".")[0]
    if not callable(found) or getattr(found, "__module__", "").partition(".")[0] != package:
        raise InputError(f"{what}; accepted: a class or function that {wrapper.module} defines")
    return found
