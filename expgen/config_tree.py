"""A tree of frozen configs: what is in it, some of it replaced, all of it filled from plain data."""

import dataclasses
from collections.abc import Mapping
from typing import Any, get_type_hints

from expgen.errors import InputError
from expgen.settings import check_config, flag_of, is_of_type


def parts_of(config: Any) -> dict[str, Any]:
    """The configs inside a config."""
    inside = {name: getattr(config, name) for name in _fields(config)}
    return {name: part for name, part in inside.items() if dataclasses.is_dataclass(part)}


def flat(config: Any, prefix: str = "") -> dict[str, Any]:
    """Every setting of a config and of those inside it, by the names that flags have."""
    parts, found = parts_of(config), dict[str, Any]()
    for name, field in _fields(config).items():
        if name in parts:
            found |= flat(parts[name], _prefix(field) or prefix)
        else:
            found[prefix + name] = getattr(config, name)
    return found


def decisive_values(config: Any) -> dict[str, Any]:
    """A config as plain data, without the settings that are as they were before they were settings."""
    parts, found = parts_of(config), dict[str, Any]()
    for name, field in _fields(config).items():
        value = getattr(config, name)
        if not (field.metadata.get("is_later") and value == field.default):
            found[name] = decisive_values(parts[name]) if name in parts else value
    return found


def with_changes(config: Any, values: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """`config` with the values that belong in it or below, and the values that do not.

    Where a field's metadata say `is_prefix`, names of what is below it begin with its name; a name that nothing before
    it has may do without.
    """
    fields = _fields(config)
    changes = {name: value for name, value in values.items() if name in fields}
    left = {name: value for name, value in values.items() if name not in changes}
    for name, part in parts_of(config).items():
        prefix = _prefix(fields[name])
        meant = {key.removeprefix(prefix): value for key, value in left.items()}
        changed, unknown = with_changes(changes.get(name, part), meant)
        left = {key: value for key, value in left.items() if key.removeprefix(prefix) in unknown}
        if changed != part:
            changes[name] = changed
    return dataclasses.replace(config, **changes), left


def filled(base: Any, values: Any, where: str) -> Any:
    """`base` with `values` that a file holds: of the types and in the ranges that its fields ask for."""
    hints = get_type_hints(type(base))
    names = list(_fields(base))
    if not isinstance(values, Mapping):
        raise InputError(f"{where} is {values!r}; accepted: an object with {', '.join(names)}")
    parts = parts_of(base)
    values = {name: filled(parts[name], value, name) if name in parts else value for name, value in values.items()}
    for name, value in values.items():
        if name not in names:
            raise InputError(f"{where} has a field {name!r}; accepted: {', '.join(names)}")
        if not is_of_type(value, hints[name]):
            raise InputError(f"{flag_of(name)} is {value!r}; accepted: a value of type {hints[name].__name__}")
    config = dataclasses.replace(base, **values)
    check_config(config)
    return config


def _prefix(field: dataclasses.Field) -> str:
    return f"{field.name}_" if field.metadata.get("is_prefix") else ""


def _fields(config: Any) -> dict[str, dataclasses.Field]:
    return {field.name: field for field in dataclasses.fields(config)}
