"""Fields of frozen configs: a default, a line of help, and what is accepted, written once.

The command line, the run folder and the Python API all read the same fields.
"""

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

from expgen.errors import InputError, check_choice


def setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """A dataclass field with its help line and, for numbers, the closed range that is accepted."""
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high})


def flag_of(name: str) -> str:
    """`entropy_coef` → `--entropy-coef`."""
    return "--" + name.replace("_", "-")


def check_config(config: Any) -> None:
    """Raise InputError where a field of the config or of a config inside it is out of range."""
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            check_config(value)
        elif get_origin(hints[field.name]) is Literal:
            check_choice(flag_of(field.name), value, get_args(hints[field.name]))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            low, high = field.metadata.get("low"), field.metadata.get("high")
            # written so that a NaN fails
            if (low is not None and not value >= low) or (high is not None and not value <= high):
                accepted = f"{low} to {high}" if high is not None else f"{low} or more"
                raise InputError(f"{flag_of(field.name)} is {value}; accepted: {accepted}")
