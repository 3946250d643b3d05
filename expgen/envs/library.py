"""Find, check and load ProcGen's compiled library (libenv interface, version 1).

ProcGen's Python package is not imported (it would import gym): only the library and its assets are needed.
"""

import ctypes
import hashlib
import importlib.util
import os
import re
import sys
from ctypes import POINTER, Structure, c_char, c_char_p, c_float, c_int, c_uint8, c_void_p
from functools import cache
from pathlib import Path
from typing import NamedTuple

from expgen.errors import InputError
from expgen.files import read_bytes

KNOWN_DIGESTS = {  # sha256 of builds of ProcGen 0.10.7
    "4ce4e3d8e4dcae5a112bfcd6f8ee910ab7a2183a1230f0cbec38502fb5e1b0e2": "procgen-mirror for Python 3.11",
    "4cf5888b8537471e247d5ef78b72b7d253c24f510150f3d61787a32a5a820a44": "procgen-mirror for Python 3.12",
    "f44786431a902e9ae1a32cd44f4aa650f4bdad893240a322e49e6098d6a7a2ea": "procgen for Python 3.10, the original package",
    "5edcf53086fce6f954c4ad96abdb433bdfed40bc82ad26b2dbb06cd73b04a562": "the original package, without symbols",
}
TRUSTED_DIGEST = "EXPGEN_PROCGEN_SHA256"  # environment variable for one more digest, of a library built by the user
DEBIAN = {"libGL": "libgl1", "libglib-2": "libglib2.0-0", "libgthread-2": "libglib2.0-0", "libpcre2-8": "libpcre2-8-0"}


class LibraryPaths(NamedTuple):
    """Paths of the library and its assets."""

    code: Path
    assets: Path


def find_library() -> LibraryPaths:
    """Return the paths from EXPGEN_PROCGEN, else <prefix>/share/expgen/procgen, else the installed package."""
    named, shared = os.environ.get("EXPGEN_PROCGEN"), Path(sys.prefix, "share", "expgen", "procgen")
    if named or shared.is_dir():
        folder, source = (Path(named), "EXPGEN_PROCGEN") if named else (shared, "ProcGen")
        return _existing(LibraryPaths(folder / "libenv.so", folder / "assets"), source)
    spec = importlib.util.find_spec("procgen")  # locates the package without running it
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "ProcGen's library is not installed: pip install --no-deps procgen-mirror, or set EXPGEN_PROCGEN to a "
            "folder with libenv.so and assets/"
        )
    data = Path(spec.submodule_search_locations[0], "data")
    return _existing(LibraryPaths(data / "prebuilt" / "libenv.so", data / "assets"), "the package procgen")


def check_known(code: Path) -> None:
    """Raise InputError unless the digest of the library is known or set in EXPGEN_PROCGEN_SHA256.

    Loading a library runs its code, so it is checked first.
    """
    digest = hashlib.sha256(read_bytes(code)).hexdigest()
    if digest not in KNOWN_DIGESTS and digest != os.environ.get(TRUSTED_DIGEST):
        accepted = f"the library of procgen-mirror 0.10.7, or {TRUSTED_DIGEST}={digest} if you trust it"
        raise InputError(f"{code} is not a known ProcGen library; accepted: {accepted}")


def is_installed() -> bool:
    """Return whether ProcGen's library is found; loading it may still fail."""
    try:
        find_library()
    except InputError:
        return False
    return True


def _existing(paths: LibraryPaths, source: str) -> LibraryPaths:
    for path in paths:
        if not path.exists():
            raise InputError(f"{source} has no {path.name} ({path}); accepted: a folder with libenv.so and assets/")
    return paths


def load_error(code: Path, error: str) -> InputError:
    """Return a one-line error for the dynamic loader's message, with the Debian package of a missing library."""
    if missing := re.match(r"(lib\S+\.so\S*): cannot open shared object", error):
        soname = missing.group(1)
        package = next((name for start, name in DEBIAN.items() if soname.startswith(start)), None)
        remedy = f"install the Debian package {package}" if package else f"install the package that contains {soname}"
        return InputError(f"ProcGen's library needs {soname}, which is not installed: {remedy}")
    return InputError(f"ProcGen's library {code} cannot be loaded: {error}")


class Option(Structure):
    _fields_ = [("name", c_char * 128), ("dtype", c_int), ("count", c_int), ("data", c_void_p)]


class Options(Structure):
    _fields_ = [("items", POINTER(Option)), ("count", c_int)]


class TensorType(Structure):
    _fields_ = [
        ("name", c_char * 128), ("scalar_type", c_int), ("dtype", c_int), ("shape", c_int * 16), ("ndim", c_int),
        ("low", c_int), ("high", c_int),
    ]  # fmt: skip


class Buffers(Structure):
    _fields_ = [
        ("obs", POINTER(c_void_p)), ("reward", POINTER(c_float)), ("first", POINTER(c_uint8)),
        ("info", POINTER(c_void_p)), ("action", POINTER(c_void_p)),
    ]  # fmt: skip


@cache
def load_library(code: Path) -> ctypes.CDLL:
    """Check and load the library, and declare its signatures; once per process."""
    check_known(code)
    try:
        library = ctypes.CDLL(str(code.resolve()))
    except OSError as error:
        raise load_error(code, str(error)) from None
    if library.libenv_version() != 1:
        raise InputError(f"{code} has libenv version {library.libenv_version()}; accepted: 1 (ProcGen 0.10.7)")
    for name, result, arguments in (
        ("libenv_make", c_void_p, [c_int, Options]),
        ("libenv_get_tensortypes", c_int, [c_void_p, c_int, POINTER(TensorType)]),
        ("libenv_set_buffers", None, [c_void_p, POINTER(Buffers)]),
        ("libenv_observe", None, [c_void_p]),
        ("libenv_act", None, [c_void_p]),
        ("libenv_close", None, [c_void_p]),
        ("get_state", c_int, [c_void_p, c_int, c_void_p, c_int]),
        ("set_state", None, [c_void_p, c_int, c_char_p, c_int]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
