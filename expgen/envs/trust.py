"""Which modules an environment's name may import: those that the user has named, never those that a file names.

`gymnasium:MODULE:ID` imports MODULE, and importing runs its code. A stranger's run folder or agent.json may hold such a
name, so it counts only where the user has said the same on this command line (`--env`, `--import`) or in this call.
"""

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from expgen.errors import InputError

T = TypeVar("T")
_TRUSTED: set[str] = set()
_IMPORTED: dict[str, None] = {}  # by --import, in that order


def trust_env(name: str) -> None:
    """The user has named the environment `name`: the module in it may be imported."""
    _TRUSTED.update(_modules(name, {}))


def import_module(name: str) -> None:
    """Import the module `name`, which the user has named, also from the current folder; it is trusted from now on."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        importlib.import_module(name)
    except ImportError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"--import is {name!r}; accepted: a module that can be imported ({reason})") from None
    _TRUSTED.add(name)
    _IMPORTED[name] = None


def with_imports(work: Callable[[T], None]) -> Callable[[T], None]:
    """`work` for another process, which first imports what `import_module` has imported here."""
    return partial(_import_first, tuple(_IMPORTED), work)


def _import_first(modules: Sequence[str], work: Callable[[T], None], argument: T) -> None:
    for module in modules:
        import_module(module)
    work(argument)


def check_trusted(name: str, options: Mapping[str, Any]) -> None:
    """InputError if the environment `name` or its `options` would import a module that the user has not named."""
    for module in _modules(name, options):
        if module not in _TRUSTED:
            what = f"the environment {name!r} would import the module {module!r}, which only a file names"
            raise InputError(f"{what}; accepted: --import {module}, if you trust it")


def _modules(name: str, options: Mapping[str, Any]) -> list[str]:
    family, _, rest = name.partition(":")
    words = [rest, *(value for value in options.values() if isinstance(value, str))]
    return [word.partition(":")[0] for word in words if ":" in word] if family == "gymnasium" else []
