"""Fields of frozen config dataclasses (default, help line, accepted range), and functions on nested configs.

The command line, config.json and the Python API all read the same fields.
"""

import dataclasses
import math
import operator
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from expgen.errors import InputError, check_choice, check_range
from expgen.text import short_repr

LAST_SEED = 2**31 - 1  # environments take int32 seeds


def setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """Return a dataclass field with a help line and, for numbers, the accepted closed range."""
    assert high is None or low is not None, "high needs low"
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high})


def later_setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """Return a setting added after configs were published: at its default it is left out of the config's digest."""
    field = setting(default, help, low, high)
    return dataclasses.field(default=default, metadata={**field.metadata, "is_later": True})


def changed_default(base: type, name: str, default: Any, help: str | None = None) -> Any:
    """Return the setting `name` of the config class `base` with another default and, if given, another help line."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(base)}[name]
    return setting(default, help or metadata["help"], metadata["low"], metadata["high"])


def flag_of(name: str) -> str:
    """`entropy_coef` → `--entropy-coef`."""
    return "--" + name.replace("_", "-")


def is_of_type(value: Any, expected: Any) -> bool:
    """Return whether a field of type `expected` may hold `value`; a float field may also hold an int."""
    if get_origin(expected) is Mapping:
        return isinstance(value, Mapping)
    if expected not in (str, int, float, bool):
        return True
    return type(value) is expected or (expected is float and type(value) is int)


def check_integer(field: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value`, any integer type (NumPy's too), as an int; raise InputError if it is none or out of range."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{field} is {short_repr(value)}; accepted: a whole number") from None
    check_range(field, number, low, high)
    return number


def check_type(field: str, value: Any, kinds: type | tuple[type, ...], accepted: str) -> None:
    """Raise InputError unless `value` is an instance of `kinds`; `accepted` describes them."""
    if not isinstance(value, kinds):
        raise InputError(f"{field} is {short_repr(value)}; accepted: {accepted}")


def check_location(field: str, value: Any, accepted: str = "a folder or URL") -> None:
    """Raise InputError unless `value` can name a file, folder or URL."""
    if not isinstance(value, (str, Path)) or not str(value) or "\0" in str(value):
        raise InputError(f"{field} is {short_repr(value)}; accepted: {accepted}")


def to_python_number(value: Any) -> Any:
    """Convert a NumPy scalar to a Python number; return anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def check_config(config: Any) -> None:
    """Raise InputError if a setting of the config or of a nested config has a wrong type or is out of range."""
    for name, field, expected, value in _settings_in(config):
        flag = flag_of(name)
        if get_origin(expected) is Literal:
            check_choice(flag, value, get_args(expected))
        elif not is_of_type(value, expected):
            raise _type_error(flag, value, expected)
        elif isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{flag} is {value}; accepted: a finite number")
        elif isinstance(value, (int, float)) and (low := field.metadata.get("low")) is not None:
            check_range(flag, value, low, field.metadata.get("high"))


def nested_configs(config: Any) -> dict[str, Any]:
    """Return the configs among the fields of a config, by name."""
    values = {name: getattr(config, name) for name in _fields(config)}
    return {name: value for name, value in values.items() if dataclasses.is_dataclass(value)}


def flatten(config: Any) -> dict[str, Any]:
    """Return every setting of a config and of its nested configs, by the names of their flags."""
    return {name: value for name, _, _, value in _settings_in(config)}


def digest_values(config: Any) -> dict[str, Any]:
    """Return a config as plain data for its digest, without later settings that have their default."""
    nested, values = nested_configs(config), dict[str, Any]()
    for name, field in _fields(config).items():
        value = getattr(config, name)
        if not (field.metadata.get("is_later") and value == field.default):
            values[name] = digest_values(nested[name]) if name in nested else value
    return values


def apply_overrides(config: Any, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return `config` with `values` set in it or in its nested configs, and the values that no config has.

    If a field's metadata has `is_prefix`, the names of its nested settings begin with the field's name; the prefix may
    be left out if no earlier config has a setting of that name.
    """
    fields = _fields(config)
    changes = {name: value for name, value in values.items() if name in fields}
    unknown = {name: value for name, value in values.items() if name not in changes}
    for name, nested in nested_configs(config).items():
        prefix = _prefix(fields[name])
        without_prefix = {key.removeprefix(prefix): value for key, value in unknown.items()}
        changed, rest = apply_overrides(changes.get(name, nested), without_prefix)
        unknown = {key: value for key, value in unknown.items() if key.removeprefix(prefix) in rest}
        if changed != nested:
            changes[name] = changed
    return dataclasses.replace(config, **changes), unknown


def config_from_values(base: Any, values: Any, where: str) -> Any:
    """Return `base` with `values` from a file, `where`; raise InputError if a name, type or range is wrong."""
    hints, nested = get_type_hints(type(base)), nested_configs(base)
    check_type(where, values, Mapping, f"an object with {', '.join(hints)}")
    changes = {}
    for name, value in values.items():
        if name not in hints:
            raise InputError(f"{where} has a field {name!r}; accepted: {', '.join(hints)}")
        changes[name] = config_from_values(nested[name], value, name) if name in nested else value
        if name not in nested and value is not None and any(map(dataclasses.is_dataclass, get_args(hints[name]))):
            raise InputError(f"{where} has settings of {name}, which --algo does not have; accepted: null")
        if not is_of_type(changes[name], hints[name]):
            raise _type_error(flag_of(name), value, hints[name])
    config = dataclasses.replace(base, **changes)
    check_config(config)
    return config


def check_plain_fields(kind: type, data: Any, what: str, without: Container[str] = (), word: str = "field") -> None:
    """Raise InputError unless `data`, from a file, is an object with fields of the dataclass `kind` and their types.

    what, word: what error messages call the object and its fields.
    without: fields that the file may not have.

    Only text, numbers and mappings are checked; the caller checks fields of other types.
    """
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in without}
    check_type(what, data, Mapping, f"an object with {', '.join(hints)}")
    for name, value in data.items():
        if name not in hints:
            raise InputError(f"{word} {name!r} is unknown; accepted: {', '.join(hints)}")
        if not is_of_type(value, hints[name]):
            raise _type_error(name, value, hints[name])


def _type_error(field: str, value: Any, expected: Any) -> InputError:
    accepted = "an object" if get_origin(expected) is Mapping else f"a value of type {expected.__name__}"
    return InputError(f"{field} is {short_repr(value)}; accepted: {accepted}")


def _settings_in(config: Any, prefix: str = "") -> Iterator[tuple[str, dataclasses.Field, Any, Any]]:
    """Yield name, field, type and value of every setting of a config and its nested configs."""
    hints, nested = get_type_hints(type(config)), nested_configs(config)
    for name, field in _fields(config).items():
        if name in nested:
            yield from _settings_in(nested[name], _prefix(field) or prefix)
        else:
            yield prefix + name, field, hints[name], getattr(config, name)


def _prefix(field: dataclasses.Field) -> str:
    return f"{field.name}_" if field.metadata.get("is_prefix") else ""


def _fields(config: Any) -> dict[str, dataclasses.Field]:
    return {field.name: field for field in dataclasses.fields(config)}
