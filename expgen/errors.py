"""The one exception that means "the user can fix this"."""

from collections.abc import Iterable


class InputError(ValueError):
    """Bad input: one line naming the flag or field, the value and what would be accepted.

    The command line prints the line and exits with status 2.
    """


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
