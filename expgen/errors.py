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
