"""The one exception that means "the user can fix this", and its kind for disks that fill up under a run."""

import errno
from collections.abc import Iterable
from pathlib import Path

OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class InputError(ValueError):
    """Bad input: one line naming the flag or field, the value and what would be accepted.

    The command line prints the line and exits with status 2.
    """


class FailedWrite(InputError):
    """Storage that was fine when the run began fails it: one line all the same, but exit status 1, a failure."""


def unwritable(path: Path, error: OSError) -> InputError:
    """What to raise where `path` could not be written."""
    kind = FailedWrite if error.errno in OUT_OF_SPACE else InputError
    return kind(f"cannot write {path}: {error.strerror}; accepted: a writable folder with space")


def check_choice(field: str, value: str, accepted: Iterable[str]) -> str:
    """`value` if it is among `accepted`, else an InputError that lists them."""
    choices = list(accepted)
    if value not in choices:
        raise InputError(f"{field} is {value!r}; accepted: {', '.join(choices)}")
    return value


def check_range(field: str, value: float, low: float, high: float | None = None) -> None:
    """Raise InputError unless `value` is in the closed range; without `high` it has no upper end."""
    if not (low <= value and (high is None or value <= high)):
        accepted = f"{low} or more" if high is None else f"{low} to {high}"
        raise InputError(f"{field} is {value}; accepted: {accepted}")
