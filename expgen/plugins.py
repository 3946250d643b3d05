"""Code of the user's own: which modules may be imported, and the names that they register.

Importing a module runs it, so no file decides that: a module is imported where the user names it (`--import`, `--env`,
`--wrapper`, an argument of a call) or where an installed package declares it as an entry point of ENTRY_POINTS. All
that a file may do is use a name that such a module has registered.
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
ENTRY_POINTS = "expgen.plugins"  # the group of entry points that are loaded when a name is not known otherwise
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

_NAMED: dict[str, None] = {}  # modules that the user has named or that have registered something, in that order
_FOLDERS: dict[str, None] = {}  # where else than usual modules are looked for
_ORIGINS: dict[tuple[str, str], str | None] = {}  # kind and name → who registered it


def trust(module: str) -> None:
    """The user has named `module`: it may be imported, from the current folder too."""
    _find_in(Path.cwd())
    _NAMED[module] = None


def is_trusted(module: str) -> bool:
    """Whether the user has named `module` or a package that it is in."""
    parts = module.split(".")
    return any(".".join(parts[:length]) in _NAMED for length in range(1, len(parts) + 1))


def import_module(name: str) -> None:
    """Import what the user has named: a module, also of the current folder, or a file `path/to/module.py`."""
    path = Path(name)
    module = path.stem if name.endswith(".py") else name
    if name.endswith(".py"):
        if not path.is_file():
            raise InputError(f"--import is {name!r}, which is no file; accepted: a file or the name of a module")
        _find_in(path.parent.absolute())
    trust(module)
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported; --debug shows where
        raise InputError(
            f"--import is {name!r}; accepted: a module that can be imported ({error_line(error)})"
        ) from error
    if name.endswith(".py") and path.resolve() != Path(str(imported.__file__)).resolve():
        raise InputError(f"--import is {name!r}, but {module!r} is {imported.__file__}; accepted: another file name")


class Plugins(NamedTuple):
    """Modules of the user's own that this process knows, for another process to know them too."""

    modules: dict[str, bool]  # and whether they were imported
    folders: list[str]  # in which they may be found


def known_plugins() -> Plugins:
    """The plug-ins of this process."""
    return Plugins({module: module in sys.modules for module in _NAMED}, list(_FOLDERS))


def load_plugins(known: Plugins) -> None:
    """Import the plug-ins of the process that started this one."""
    for folder in known.folders:
        _find_in(Path(folder))
    for module, is_imported in known.modules.items():
        trust(module)
        if is_imported:
            import_module(module)


def is_local(name: str) -> bool:
    """Whether `name` is known in this process alone: that of a script, a notebook or an argument of a call."""
    return any(known == name and origin in (None, "__main__") for (_, known), origin in _ORIGINS.items())


def check_known_elsewhere(names: Mapping[str, str]) -> None:
    """Raise InputError if one of `names`, by flag, is registered in this process only: workers would not know it."""
    for flag, name in names.items():
        if is_local(name):
            what = f"{flag} is {name!r}, which other processes do not know"
            raise InputError(f"{what}; accepted: --processes 1, or a name that a module registers")


def add(table: MutableMapping[str, T], kind: str, name: str, entry: T, origin: str | None) -> None:
    """Register `entry` as `name` in `table`; whoever registered a name may change it, as a notebook's cell run twice.

    `origin` is the module that registers it; None where it is known in this process alone.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(
            f"name of the {kind} is {name!r}; accepted: letters, digits, '_', '.' and '-', the first a letter or digit"
        )
    if name in table and _ORIGINS.get((kind, name), "") != origin:
        raise InputError(f"name of the {kind} is {name!r}, which is taken; accepted: another name")
    table[name], _ORIGINS[kind, name] = entry, origin
    if origin not in (None, "__main__"):
        _NAMED[origin] = None


def caller() -> str:
    """The name of the module that called the calling function."""
    return str(sys._getframe(2).f_globals.get("__name__"))


def find(table: Mapping[str, T], field: str, name: Any) -> T:
    """The entry of `table` registered as `name`, or an InputError that names `field` and lists the entries."""
    if not isinstance(name, str) or name not in table:
        load_entry_points()
    if not isinstance(name, str) or name not in table:
        raise InputError(f"{field} is {name!r}; accepted: {', '.join(table)}, or what --import MODULE registers")
    return table[name]


@functools.cache
def load_entry_points() -> None:
    """Import the plug-ins that installed packages declare; one that fails is skipped with a warning."""
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except (Exception, SystemExit) as error:
            warnings.warn(f"plug-in {entry.name} ({entry.value}) was not loaded: {error_line(error)}", stacklevel=2)


def _find_in(folder: Path) -> None:
    _FOLDERS[str(folder)] = None
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
