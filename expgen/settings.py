"""Fields of frozen configs: a default, a line of help, and what is accepted, written once; and trees of such configs.

The command line, the run folder and the Python API all read the same fields. Of a tree: what is in it, some of it
replaced, all of it filled from plain data.
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

LAST_SEED = 2**31 - 1  # seeds are int32 where environments take them


def setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """A dataclass field with its help line and, for numbers, the closed range that is accepted."""
    assert high is None or low is not None, "an upper end comes with a lower one"
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high})


def later_setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """A setting that configs published before did not have: at its default it is left out of a config's digest."""
    field = setting(default, help, low, high)
    return dataclasses.field(default=default, metadata={**field.metadata, "is_later": True})


def changed_default(base: type, name: str, default: Any, help: str | None = None) -> Any:
    """The setting `name` of the config class `base` with another default, and perhaps another help line."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(base)}[name]
    return setting(default, help or metadata["help"], metadata["low"], metadata["high"])


def flag_of(name: str) -> str:
    """`entropy_coef` → `--entropy-coef`."""
    return "--" + name.replace("_", "-")


def is_of_type(value: Any, expected: Any) -> bool:
    """Whether a plain field may hold `value`: exactly its type, or a whole number where a float is asked for."""
    if get_origin(expected) is Mapping:
        return isinstance(value, Mapping)
    if expected not in (str, int, float, bool):
        return True
    return type(value) is expected or (expected is float and type(value) is int)


def check_integer(field: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` as an int, whatever kind of whole number it is (NumPy's too); an InputError where it is none in range."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{field} is {short_repr(value)}; accepted: a whole number") from None
    check_range(field, number, low, high)
    return number


def check_type(field: str, value: Any, kinds: type | tuple[type, ...], accepted: str) -> None:
    """An InputError unless `value` is one of `kinds`, which `accepted` says in words."""
    if not isinstance(value, kinds):
        raise InputError(f"{field} is {short_repr(value)}; accepted: {accepted}")


def check_location(field: str, value: Any, accepted: str = "a folder or URL") -> None:
    """An InputError unless `value` can name a file or folder."""
    if not isinstance(value, (str, Path)) or "\0" in str(value):
        raise InputError(f"{field} is {short_repr(value)}; accepted: {accepted}")


def to_python_number(value: Any) -> Any:
    """A number of NumPy's as Python's own; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def check_config(config: Any) -> None:
    """Raise InputError where a setting of the config or of a config inside it has a wrong type or is out of range."""
    for name, field, expected, value in _settings_in(config):
        flag = flag_of(name)
        if get_origin(expected) is Literal:
            check_choice(flag, value, get_args(expected))
        elif not is_of_type(value, expected):
            raise _of_wrong_type(flag, value, expected)
        elif isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{flag} is {value}; accepted: a finite number")
        elif isinstance(value, (int, float)) and (low := field.metadata.get("low")) is not None:
            check_range(flag, value, low, field.metadata.get("high"))


def nested_configs(config: Any) -> dict[str, Any]:
    """The configs inside a config."""
    inside = {name: getattr(config, name) for name in _fields(config)}
    return {name: part for name, part in inside.items() if dataclasses.is_dataclass(part)}


def flatten(config: Any) -> dict[str, Any]:
    """Every setting of a config and of those inside it, by the names that flags have."""
    return {name: value for name, _, _, value in _settings_in(config)}


def digest_values(config: Any) -> dict[str, Any]:
    """A config as plain data for its digest: a later setting at its default is left out."""
    parts, found = nested_configs(config), dict[str, Any]()
    for name, field in _fields(config).items():
        value = getattr(config, name)
        if not (field.metadata.get("is_later") and value == field.default):
            found[name] = digest_values(parts[name]) if name in parts else value
    return found


def apply_overrides(config: Any, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """`config` with the values that belong in it or below, and the values that do not.

    Where a field's metadata say `is_prefix`, names of what is below it begin with its name; a name that nothing before
    it has may do without.
    """
    fields = _fields(config)
    changes = {name: value for name, value in values.items() if name in fields}
    left = {name: value for name, value in values.items() if name not in changes}
    for name, part in nested_configs(config).items():
        prefix = _prefix(fields[name])
        meant = {key.removeprefix(prefix): value for key, value in left.items()}
        changed, unknown = apply_overrides(changes.get(name, part), meant)
        left = {key: value for key, value in left.items() if key.removeprefix(prefix) in unknown}
        if changed != part:
            changes[name] = changed
    return dataclasses.replace(config, **changes), left


def config_from_values(base: Any, values: Any, where: str) -> Any:
    """`base` with `values` that a file holds: of the types and in the ranges that its fields ask for."""
    hints, parts = get_type_hints(type(base)), nested_configs(base)
    check_type(where, values, Mapping, f"an object with {', '.join(hints)}")
    changes = {}
    for name, value in values.items():
        if name not in hints:
            raise InputError(f"{where} has a field {name!r}; accepted: {', '.join(hints)}")
        changes[name] = config_from_values(parts[name], value, name) if name in parts else value
        if not is_of_type(changes[name], hints[name]):
            raise _of_wrong_type(flag_of(name), value, hints[name])
    config = dataclasses.replace(base, **changes)
    check_config(config)
    return config


def check_plain_fields(kind: type, data: Any, what: str, without: Container[str] = (), word: str = "field") -> None:
    """Raise InputError unless `data`, from a file, is an object whose fields the dataclass `kind` has, of its types.

    `what` names it in errors, and `word` what it has. Fields in `without` may not stand there; those that are no text,
    number or mapping are left to whoever reads them.
    """
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in without}
    check_type(what, data, Mapping, f"an object with {', '.join(hints)}")
    for name, value in data.items():
        if name not in hints:
            raise InputError(f"{word} {name!r} is unknown; accepted: {', '.join(hints)}")
        if not is_of_type(value, hints[name]):
            raise _of_wrong_type(name, value, hints[name])


def _of_wrong_type(field: str, value: Any, expected: Any) -> InputError:
    accepted = "an object" if get_origin(expected) is Mapping else f"a value of type {expected.__name__}"
    return InputError(f"{field} is {short_repr(value)}; accepted: {accepted}")


def _settings_in(config: Any, prefix: str = "") -> Iterator[tuple[str, dataclasses.Field, Any, Any]]:
    """Name, field, type and value of every setting in a tree of configs; names begin as those of their flags."""
    hints, parts = get_type_hints(type(config)), nested_configs(config)
    for name, field in _fields(config).items():
        if name in parts:
            yield from _settings_in(parts[name], _prefix(field) or prefix)
        else:
            yield prefix + name, field, hints[name], getattr(config, name)


def _prefix(field: dataclasses.Field) -> str:
    return f"{field.name}_" if field.metadata.get("is_prefix") else ""


def _fields(config: Any) -> dict[str, dataclasses.Field]:
    return {field.name: field for field in dataclasses.fields(config)}
