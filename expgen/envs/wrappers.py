"""Gymnasium wrappers by name, as `minigrid.wrappers:ImgObsWrapper` or `my_wrappers:Resize(size=64)`.

The option `wrappers` of an environment holds them as one text, the innermost first, with `;` between: that is what
config.json and agent.json keep.
"""

import ast
import importlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from expgen.errors import InputError, error_line

WRAPPERS = "wrappers"  # the option
_WRAPPER = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)(?P<call>\(.*\))?", re.DOTALL)
_ACCEPTED = "accepted: MODULE:CLASS or MODULE:CLASS(NAME=VALUE, …), values as Python writes them"


class Wrapper(NamedTuple):
    """What a text means."""

    module: str
    name: str
    arguments: dict[str, Any]


def wrappers_text(wrappers: Any) -> str:
    """The option's text: of texts, and of classes and functions that stand at the top of a module."""
    if isinstance(wrappers, str):
        return wrappers
    if not isinstance(wrappers, Iterable):
        raise InputError(f"wrappers is {wrappers!r}; {_ACCEPTED}, or a list of these or of classes")
    return "; ".join(_text(wrapper) for wrapper in wrappers)


def parse_wrappers(text: Any) -> list[Wrapper]:
    """What the option's text means; nothing is imported."""
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
        if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
            raise ValueError
        arguments = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise InputError(f"--wrapper is {text!r}; {_ACCEPTED}") from None
    return Wrapper(match["module"], match["name"], arguments)


def load_wrapper(wrapper: Wrapper) -> Any:
    """The wrapper's class; imports its module, so the user has named it."""
    what = f"--wrapper is '{wrapper.module}:{wrapper.name}'"
    try:
        found = getattr(importlib.import_module(wrapper.module), wrapper.name, None)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported; --debug shows where
        raise InputError(f"{what}; accepted: a module that can be imported ({error_line(error)})") from error
    package = wrapper.module.partition(".")[0]
    if not callable(found) or getattr(found, "__module__", "").partition(".")[0] != package:
        raise InputError(f"{what}; accepted: a class or function that {wrapper.module} defines")
    return found
