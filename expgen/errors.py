"""Errors that the user can fix, and checks that raise them."""

import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

DISK_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
PROBE = ".expgen-writable."  # prefix of the file that check_writable creates and deletes
MAX_WORD = 300  # characters of one word in an error line: enough for paths and URLs


class InputError(ValueError):
    """Bad input: one line with the flag or field, the value and the accepted values.

    The command line prints the line and exits with status 2. Words longer than MAX_WORD, as in damaged files, are cut.
    """

    def __init__(self, line: str) -> None:
        super().__init__(re.sub(rf"(\S{{{MAX_WORD}}})\S+", r"\1…", line))


class StorageError(InputError):
    """A file or folder cannot be written."""


class FailedStorage(StorageError):
    """The disk is full, a folder was deleted or the storage does not respond: one line, but exit status 1."""


class TakenOver(RuntimeError):
    """Another process has become the owner of the run."""


def error_line(error: BaseException) -> str:
    """Return the type and message of an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


@contextlib.contextmanager
def show_url_in_errors(url: str, folder: Path) -> Iterator[None]:
    """Replace `folder`, the local copy of `url`, with `url` in the text of InputErrors raised inside."""
    try:
        yield
    except InputError as error:
        raise type(error)(str(error).replace(str(folder), url)) from None


def write_error(path: Path, error: OSError) -> StorageError:
    """Return the StorageError to raise when writing `path` failed with `error`."""
    kind = FailedStorage if error.errno in DISK_FAILURES else StorageError
    return kind(f"cannot write {path}: {error.strerror}; accepted: a writable folder with space")


def check_writable(path: Path) -> None:
    """Raise InputError if the file `path` cannot be written. Called before long work that ends in writing it.

    Permissions alone do not tell (root has them in /proc too), so a file is created in the nearest existing folder and
    deleted again.
    """
    try:
        nearest = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_file() or nearest != path:  # not for a device, such as /dev/null
            folder = path.parent if nearest == path else nearest
            with tempfile.NamedTemporaryFile(prefix=PROBE, suffix=".part", dir=folder):
                pass
        if nearest == path and not os.access(path, os.W_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:  # also if the name is too long, or a parent folder is not accessible
        raise write_error(path, error) from None


def check_choice(field: str, value: str, accepted: Iterable[str]) -> str:
    """Return `value` if it is in `accepted`; else raise InputError with the accepted values."""
    choices = list(accepted)
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{field} is {' '.join(repr(value).split()):.80}; accepted: {', '.join(choices)}")
    return value


def check_range(field: str, value: float, low: float, high: float | None = None) -> None:
    """Raise InputError unless low ≤ value ≤ high; None means no upper limit."""
    if not (low <= value and (high is None or value <= high)):
        accepted = f"{_bound_text(low)} or more" if high is None else f"{_bound_text(low)} to {_bound_text(high)}"
        raise InputError(f"{field} is {value!s:.40}; accepted: {accepted}")


def _bound_text(bound: float) -> str:
    """Return the shortest text that reads as `bound`: 1000 also for 1000.0."""
    return str(bound).removesuffix(".0")
