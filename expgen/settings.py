"""Fields of frozen configs: a default, a line of help, and what is accepted, written once.

The command line, the run folder and the Python API all read the same fields.
"""

import dataclasses
import math
from typing import Any, Literal, get_args, get_origin, get_type_hints

from expgen.errors import InputError, check_choice, check_range

LAST_SEED = 2**31 - 1  # seeds are int32 where environments take them


def setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """A dataclass field with its help line and, for numbers, the closed range that is accepted."""
    assert high is None or low is not None, "an upper end comes with a lower one"
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high})


def later_setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """A setting that configs published before did not have: at its default it is left out of a config's digest."""
    field = setting(default, help, low, high)
    return dataclasses.field(default=default, metadata={**field.metadata, "is_later": True})


def own_default(base: type, name: str, default: Any, help: str | None = None) -> Any:
    """The setting `name` of the config `base`, with the default and perhaps the help line of a config built on it."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(base)}[name]
    return setting(default, help or metadata["help"], metadata["low"], metadata["high"])


def flag_of(name: str) -> str:
    """`entropy_coef` → `--entropy-coef`."""
    return "--" + name.replace("_", "-")


def is_of_type(value: Any, expected: Any) -> bool:
    """Whether a plain field may hold `value`: exactly its type, or a whole number where a float is asked for."""
    if expected not in (str, int, float, bool):
        return True
    return type(value) is expected or (expected is float and type(value) is int)


def check_config(config: Any, prefix: str = "") -> None:
    """Raise InputError where a field of the config or of a config inside it is out of range.

    `prefix` is how the flags of these fields begin: `explorer_` for what is inside a field `explorer`.
    """
    hints = get_type_hints(type(config))
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            check_config(value, f"{field.name}_" if field.metadata.get("is_prefix") else prefix)
        elif get_origin(hints[field.name]) is Literal:
            check_choice(flag_of(prefix + field.name), value, get_args(hints[field.name]))
        elif not is_of_type(value, hints[field.name]):
            accepted = f"a value of type {hints[field.name].__name__}"
            raise InputError(f"{flag_of(prefix + field.name)} is {value!r}; accepted: {accepted}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if not math.isfinite(value):
                raise InputError(f"{flag_of(prefix + field.name)} is {value}; accepted: a finite number")
            if (low := field.metadata.get("low")) is not None:
                check_range(flag_of(prefix + field.name), value, low, field.metadata.get("high"))
