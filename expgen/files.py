"""Files: written whole or not at all, named only inside their folder, and read only where they are regular files."""

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

PART = ".part"  # how the name of a file that is being written ends
PART_NAME = re.compile(r".+\.[0-9a-f]{8}\.part")  # in full
MAX_BYTES = 2**34  # of a file that is read as one
LONGEST_NAME = 255  # letters of a name from outside, folders included
JSON_BYTES = 2**24  # of one that describes a run
KINDS = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}  # of what is no file; else a device


class UnreadableFile(InputError):
    """A pipe, device or folder where a file is expected, or a file that is too large."""


def write_atomic(path: Path, content: bytes, new_folders: int | None = None) -> None:
    """Write beside, flush to disk, then rename: a reader sees the old file or the new one, never a part.

    path: the file to write or replace.
    content: all of it.
    new_folders: how many missing folders may be created for it; None for any number. A run passes how deep the file
        lies in its folder, so that a run folder that was deleted is not created again.

    InputError if it cannot be written; what was there before stays.
    """
    beside = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{PART}")  # two writers never share one
    for tries_left in (2, 1, 0):
        try:
            if new_folders is not None and not (base := path.parents[new_folders]).is_dir():
                raise FailedStorage(f"cannot write {path}: the folder {base} no longer exists")
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(beside, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
            return
        except FileNotFoundError as error:  # its folder was deleted meanwhile
            if not tries_left:
                raise write_error(path, error) from None
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise write_error(path, error) from None


def make_folder(path: Path) -> None:
    """Create `path` and its parents where they are missing; InputError if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from None


def delete_partial_files(folder: Path, below: Sequence[str] = ()) -> None:
    """Delete the half-written files of ours that killed processes left in `folder`, and deep in its folders `below`.

    Nothing else is looked at: a folder may hold more than a run, and others' files may end alike.
    """
    inside = (part for name in below for part in (folder / name).rglob(f"*{PART}"))
    for part in (*folder.glob(f"*{PART}"), *inside):
        if PART_NAME.fullmatch(part.name):
            with contextlib.suppress(OSError):
                part.unlink()


def check_name(name: str) -> str:
    """`name` unless it could lead out of the folder it is joined to; else an InputError."""
    is_outside = any(part in ("", ".", "..") for part in name.split("/"))
    if is_outside or any(letter == "\\" or not " " <= letter != "\x7f" for letter in name):
        accepted = "a relative path without '..', empty parts, backslashes or control characters"
        raise InputError(f"the file name {short_repr(name)} is not safe; accepted: {accepted}")
    if len(name) > LONGEST_NAME:
        raise InputError(f"the file name {short_repr(name)} is too long; accepted: {LONGEST_NAME} letters")
    return name


def join_inside(folder: Path, name: str) -> Path:
    """The path of `name` below `folder`, where others chose the name or what lies there.

    folder: where the path must stay, also through links; it need not exist.
    name: parts joined by slashes, as a listing or an archive gives them.

    InputError for names that lead out, links that do, and what is neither a file nor a folder.
    """
    path = folder / check_name(name)
    base, real = os.path.realpath(folder), os.path.realpath(path)
    if os.path.commonpath((base, real)) != base:
        raise InputError(f"{path} is a link to {real!r}; accepted: files and folders inside {folder}")
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise UnreadableFile(_not_regular(path, os.stat(path).st_mode))
    return path


def open_regular(path: Path) -> BinaryIO:
    """Open `path` for reading; UnreadableFile at once for a pipe, a device or a folder, none of which is opened."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise UnreadableFile(_not_regular(path, mode))
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """The content of a regular file of at most `most` bytes; UnreadableFile for anything else that is there."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise UnreadableFile(f"{path} has {size} bytes; accepted: at most {most}")
        return file.read()


def read_json(path: Path) -> Any:
    """What a JSON file holds; UnreadableFile where it is none, is too long or is nested too deeply."""
    try:
        return json.loads(read_bytes(path, JSON_BYTES))
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"{path} is not JSON; accepted: a file that expgen wrote") from None


def _not_regular(path: Path, mode: int) -> str:
    return f"{path} is a {KINDS.get(stat.S_IFMT(mode), 'device')}; accepted: a regular file"
