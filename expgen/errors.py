"""The one exception that means "the user can fix this", and its kind for storage that fails under a command."""

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
LONGEST_WORD = 300  # letters of a word in an error line: paths and URLs stand whole


class InputError(ValueError):
    """Bad input: one line naming the flag or field, the value and what would be accepted.

    The command line prints the line and exits with status 2. Words as long as only a damaged file has are cut.
    """

    def __init__(self, line: str) -> None:
        super().__init__(re.sub(rf"(\S{{{LONGEST_WORD}}})\S+", r"\1…", line))


class StorageError(InputError):
    """A file or folder that cannot be written."""


class FailedStorage(StorageError):
    """A disk that is full, a folder that was deleted, storage that does not respond: one line, but exit status 1."""


class TakenOver(RuntimeError):
    """Another process has become the owner of the run."""


def error_line(error: BaseException) -> str:
    """An error's kind and text in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


@contextlib.contextmanager
def show_url_in_errors(url: str, folder: Path) -> Iterator[None]:
    """InputErrors raised inside name `url` instead of `folder`, its local copy."""
    try:
        yield
    except InputError as error:
        raise type(error)(str(error).replace(str(folder), url)) from None


def write_error(path: Path, error: OSError) -> StorageError:
    """What to raise where `path` could not be written."""
    kind = FailedStorage if error.errno in OUT_OF_SPACE else StorageError
    return kind(f"cannot write {path}: {error.strerror}; accepted: a writable folder with space")


def check_writable(path: Path) -> None:
    """Raise InputError if a file `path` could not be written, before there is anything to write."""
    lack = 0
    try:
        place = next(place for place in (path, *path.absolute().parents) if place.exists())
    except OSError as error:  # its name is too long, or a folder above it is closed
        raise write_error(path, error) from None
    if path.is_dir():
        lack = errno.EISDIR
    elif place != path and not place.is_dir():
        lack = errno.ENOTDIR
    elif not os.access(place, os.W_OK, effective_ids=True):
        lack = errno.EROFS if os.statvfs(place).f_flag & os.ST_RDONLY else errno.EACCES
    if lack:
        raise write_error(path, OSError(lack, os.strerror(lack)))


def check_choice(field: str, value: str, accepted: Iterable[str]) -> str:
    """`value` if it is among `accepted`, else an InputError that lists them."""
    choices = list(accepted)
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{field} is {' '.join(repr(value).split()):.80}; accepted: {', '.join(choices)}")
    return value


def check_range(field: str, value: float, low: float, high: float | None = None) -> None:
    """Raise InputError unless `value` is in the closed range; without `high` it has no upper end."""
    if not (low <= value and (high is None or value <= high)):
        accepted = f"{low} or more" if high is None else f"{low} to {high}"
        raise InputError(f"{field} is {value!s:.40}; accepted: {accepted}")
