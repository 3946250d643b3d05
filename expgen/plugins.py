"""User modules: which of them may be imported, and the names that they register.

Importing a module runs its code, so a file never decides what is imported. A module is imported if the user names it
(`--import`, `--env`, `--wrapper`, an argument of a call) or if an installed package declares it as an entry point of
the group ENTRY_POINTS. A file may only use names that such modules have registered.
"""

import functools
import importlib
import importlib.metadata
import re
import sys
import warnings
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from expgen.errors import InputError, error_line

T = TypeVar("T")
ENTRY_POINTS = "expgen.plugins"  # loaded when a name is unknown
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

# Dicts without values keep the order of insertion.
_TRUSTED: dict[str, None] = {}  # modules that the user has named or that have registered a name
_FOLDERS: dict[str, None] = {}  # folders added to sys.path
_ORIGINS: dict[tuple[str, str], str | None] = {}  # kind and name → the module that registered it


def trust(module: str) -> None:
    """Allow the import of `module`, also from the current folder: the user has named it."""
    _add_to_path(Path.cwd())
    _TRUSTED[module] = None


def is_trusted(module: str) -> bool:
    """Return whether the user has named `module` or one of its parent packages."""
    parts = module.split(".")
    return any(".".join(parts[:length]) in _TRUSTED for length in range(1, len(parts) + 1))


def import_module(name: str) -> None:
    """Import a module that the user has named, by its name or as a file `path/to/module.py`."""
    path = Path(name)
    is_file = name.endswith(".py")
    module = path.stem if is_file else name
    if is_file:
        if not path.is_file():
            raise InputError(f"--import is {name!r}, which is not a file; accepted: a file or the name of a module")
        _add_to_path(path.parent.absolute())
    trust(module)
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # the module's own code may raise anything; --debug shows where
        accepted = f"a module that can be imported ({error_line(error)})"
        raise InputError(f"--import is {name!r}; accepted: {accepted}") from error
    if is_file and path.resolve() != Path(str(imported.__file__)).resolve():
        raise InputError(f"--import is {name!r}, but {module!r} is {imported.__file__}; accepted: another file name")


class Plugins(NamedTuple):
    """The user modules of one process, to load in another."""

    modules: dict[str, bool]  # name → whether it was imported
    folders: list[str]  # to add to sys.path


def known_plugins() -> Plugins:
    """Return the user modules of this process."""
    return Plugins({module: module in sys.modules for module in _TRUSTED}, list(_FOLDERS))


def load_plugins(known: Plugins) -> None:
    """Import the user modules of the parent process."""
    for folder in known.folders:
        _add_to_path(Path(folder))
    for module, is_imported in known.modules.items():
        trust(module)
        if is_imported:
            import_module(module)


def is_local(name: str) -> bool:
    """Return whether `name` was registered by a script, a notebook or a call: other processes do not know it."""
    return any(known == name and origin in (None, "__main__") for (_, known), origin in _ORIGINS.items())


def check_known_to_workers(names: Mapping[str, str]) -> None:
    """Raise InputError if one of `names`, by flag, is registered in this process only."""
    for flag, name in names.items():
        if is_local(name):
            what = f"{flag} is {name!r}, which other processes do not know"
            raise InputError(f"{what}; accepted: --processes 1, or a name that a module registers")


def add(table: MutableMapping[str, T], kind: str, name: str, entry: T, origin: str | None) -> None:
    """Register `entry` as `name` in `table`; only the same origin may replace a name (a notebook cell run twice).

    kind: what the table holds, for error messages.
    origin: the module that registers it; None if only this process knows it.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(
            f"name of the {kind} is {name!r}; accepted: letters, digits, '_', '.' and '-', the first a letter or digit"
        )
    if name in table and _ORIGINS.get((kind, name), "") != origin:
        raise InputError(f"name of the {kind} is {name!r}, which is taken; accepted: another name")
    table[name], _ORIGINS[kind, name] = entry, origin
    if origin not in (None, "__main__"):
        _TRUSTED[origin] = None


def caller() -> str:
    """Return the name of the module that called the calling function."""
    return str(sys._getframe(2).f_globals.get("__name__"))


def find(table: Mapping[str, T], field: str, name: Any) -> T:
    """Return the entry `name` of `table`; raise InputError with `field` and the registered names if there is none."""
    if not isinstance(name, str) or name not in table:
        load_entry_points()
    if not isinstance(name, str) or name not in table:
        raise InputError(f"{field} is {name!r}; accepted: {', '.join(table)}, or what --import MODULE registers")
    return table[name]


@functools.cache
def load_entry_points() -> None:
    """Import the plug-ins that installed packages declare; skip a failing one with a warning."""
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except (Exception, SystemExit) as error:
            warnings.warn(f"plug-in {entry.name} ({entry.value}) was not loaded: {error_line(error)}", stacklevel=2)


def _add_to_path(folder: Path) -> None:
    _FOLDERS[str(folder)] = None
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
