"""Where ProcGen's compiled library lies, and what to say when it is not there or does not load."""

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from expgen.errors import InputError

DEBIAN = {"libGL": "libgl1", "libglib-2": "libglib2.0-0", "libgthread-2": "libglib2.0-0", "libpcre2-8": "libpcre2-8-0"}


class Library(NamedTuple):
    """Where ProcGen lies on this machine."""

    code: Path
    assets: Path


def find_library() -> Library:
    """ProcGen from EXPGEN_PROCGEN, else from <prefix>/share/expgen/procgen, else from the installed package."""
    named, shared = os.environ.get("EXPGEN_PROCGEN"), Path(sys.prefix, "share", "expgen", "procgen")
    if named or shared.is_dir():
        folder = Path(named) if named else shared
        return _checked(Library(folder / "libenv.so", folder / "assets"), "EXPGEN_PROCGEN" if named else "ProcGen")
    spec = importlib.util.find_spec("procgen")  # locates the package without running it
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "ProcGen's library is not installed; accepted: pip install --no-deps procgen-mirror, or EXPGEN_PROCGEN "
            "naming a folder that holds libenv.so and assets/"
        )
    data = Path(spec.submodule_search_locations[0], "data")
    return _checked(Library(data / "prebuilt" / "libenv.so", data / "assets"), "the package procgen")


def is_installed() -> bool:
    """Whether there is a ProcGen to load; whether it loads only loading tells."""
    try:
        find_library()
    except InputError:
        return False
    return True


def _checked(library: Library, source: str) -> Library:
    for path in library:
        if not path.exists():
            raise InputError(f"{source} has no {path.name} ({path}); accepted: a folder with libenv.so and assets/")
    return library


def load_error(code: Path, error: str) -> InputError:
    """One line for the dynamic loader's complaint; names the Debian package where a system library is missing."""
    if missing := re.match(r"(lib\S+\.so\S*): cannot open shared object", error):
        soname = missing.group(1)
        package = next((name for start, name in DEBIAN.items() if soname.startswith(start)), None)
        cure = f"install the Debian package {package}" if package else f"install what brings {soname}"
        return InputError(f"ProcGen's library needs {soname}, which this system lacks: {cure}")
    return InputError(f"ProcGen's library {code} does not load: {error}")
