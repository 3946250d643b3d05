"""Read and write files safely: atomic writes, names that stay inside a folder, regular files only."""

import contextlib
import json
import os
import re
import stat
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from expgen.errors import FailedStorage, InputError, write_error
from expgen.text import short_repr

PART = ".part"  # suffix of a file while it is written
PART_NAME = re.compile(r".+\.[0-9a-f]{8}\.part")
MAX_BYTES = 2**34  # of any file that is read at once
MAX_JSON_BYTES = 2**24
MAX_NAME = 255  # characters of a relative path from outside
KINDS = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}  # anything else is a device


class UnreadableFile(InputError):
    """A pipe, device or folder in place of a file, or a file that is too large."""


def write_atomic(path: Path, content: bytes, new_folders: int | None = None) -> None:
    """Write a temporary file, flush it to disk and rename it: readers see the old file or the new one, never a part.

    path: the file to create or replace.
    content: the complete content.
    new_folders: how many missing parent folders may be created; None for any number. A run passes the depth of the
        file inside its folder, so that a run folder that was deleted is not created again.

    Raises InputError if the file cannot be written; the old file stays.
    """
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{PART}")  # unique to this writer
    for tries_left in (2, 1, 0):
        try:
            if new_folders is not None and not (base := path.parents[new_folders]).is_dir():
                raise FailedStorage(f"cannot write {path}: the folder {base} no longer exists")
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            return
        except FileNotFoundError as error:  # the folder was deleted during the write
            if not tries_left:
                raise write_error(path, error) from None
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise write_error(path, error) from None


def make_folder(path: Path) -> None:
    """Create `path` and its missing parents; raise InputError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from None


def delete_partial_files(folder: Path, subfolders: Sequence[str] = ()) -> None:
    """Delete temporary files that killed processes left in `folder` and, recursively, in its `subfolders`.

    Other subfolders and other `.part` files are left alone: they may not be ours.
    """
    nested = (part for name in subfolders for part in (folder / name).rglob(f"*{PART}"))
    for part in (*folder.glob(f"*{PART}"), *nested):
        if PART_NAME.fullmatch(part.name):
            with contextlib.suppress(OSError):
                part.unlink()


def check_name(name: str) -> str:
    """Return the relative path `name`; raise InputError if it is too long or may lead out of its folder."""
    is_outside = any(part in ("", ".", "..") for part in name.split("/"))
    if is_outside or any(letter == "\\" or not " " <= letter != "\x7f" for letter in name):
        accepted = "a relative path without '..', empty parts, backslashes or control characters"
        raise InputError(f"the file name {short_repr(name)} is not safe; accepted: {accepted}")
    if len(name) > MAX_NAME:
        raise InputError(f"the file name {short_repr(name)} is too long; accepted: {MAX_NAME} letters")
    return name


def join_inside(folder: Path, name: str) -> Path:
    """Return the path of `name` inside `folder`, where the name or the files are not trusted.

    folder: the path must stay inside it, also after following links; it need not exist.
    name: a relative path with slashes, as a listing or an archive gives it.

    Raises InputError if the name or a link leads out, or if the path is neither a file nor a folder.
    """
    path = folder / check_name(name)
    base, real = os.path.realpath(folder), os.path.realpath(path)
    if os.path.commonpath((base, real)) != base:
        raise InputError(f"{path} is a link to {real!r}; accepted: files and folders inside {folder}")
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise _not_regular(path, os.stat(path).st_mode)
    return path


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise UnreadableFile for a pipe, device or folder without opening it."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise _not_regular(path, mode)
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file; raise UnreadableFile if it is larger than `max_bytes` or not regular."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise UnreadableFile(f"{path} has {size} bytes; accepted: at most {max_bytes}")
        return file.read()


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; raise UnreadableFile if it is not JSON, too large or nested too deeply."""
    content = read_bytes(path, MAX_JSON_BYTES)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise UnreadableFile(f"{path} is not JSON; accepted: a file that expgen wrote") from None


def _not_regular(path: Path, mode: int) -> UnreadableFile:
    return UnreadableFile(f"{path} is a {KINDS.get(stat.S_IFMT(mode), 'device')}; accepted: a regular file")
