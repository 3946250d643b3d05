"""Nested configs: overrides by name, values from files."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.settings import apply_overrides, config_from_values, digest_values, flatten, later_setting, nested_configs


@dataclass(frozen=True)
class Leaf:
    rate: float = 0.5
    name: str = "leaf"


@dataclass(frozen=True)
class Twin:
    steps: int = 1
    leaf: Leaf = Leaf()


@dataclass(frozen=True)
class Root:
    steps: int = 10
    leaf: Leaf = Leaf()
    twin: Twin | None = field(default=Twin(), metadata={"is_prefix": True})


def test_nested_configs_returns_config_fields() -> None:
    assert nested_configs(Root()) == {"leaf": Leaf(), "twin": Twin()}
    assert nested_configs(Root(twin=None)) == {"leaf": Leaf()} and nested_configs(Leaf()) == {}


def test_flatten_returns_every_setting_by_flag_name() -> None:
    assert flatten(Root(twin=None)) == {"steps": 10, "rate": 0.5, "name": "leaf", "twin": None}
    of_twin = {"twin_steps": 1, "twin_rate": 0.5, "twin_name": "leaf"}
    assert flatten(Root()) == {"steps": 10, "rate": 0.5, "name": "leaf", **of_twin}
    for name, value in flatten(Root()).items():
        assert apply_overrides(Root(), {name: value}) == (Root(), {})


def test_digest_values_omit_later_settings_at_their_default() -> None:
    @dataclass(frozen=True)
    class Grown:
        leaf: Leaf = Leaf()
        later: int = later_setting(3, "added after configs were published")

    assert digest_values(Grown()) == {"leaf": {"rate": 0.5, "name": "leaf"}}
    assert digest_values(Grown(later=4)) == {"leaf": {"rate": 0.5, "name": "leaf"}, "later": 4}


def test_apply_overrides_sets_nested_fields_and_prefixed_names() -> None:
    changed, left = apply_overrides(
        Root(), {"rate": 0.1, "twin_steps": 3, "twin_name": "other", "rat": 1, "twin_rat": 2}
    )
    assert changed == Root(10, Leaf(0.1), Twin(3, Leaf(0.5, "other")))
    assert left == {"rat": 1, "twin_rat": 2}
    assert apply_overrides(Root(twin=None), {"twin_steps": 3}) == (Root(twin=None), {"twin_steps": 3})


def test_apply_overrides_changes_a_replaced_nested_config() -> None:
    changed, left = apply_overrides(Root(), {"leaf": Leaf(name="new"), "rate": 0.1})
    assert changed.leaf == Leaf(0.1, "new") and not left


def test_config_from_values_sets_named_fields() -> None:
    data = {"leaf": {"rate": 1}, "twin": {"leaf": {"name": "x"}}}
    assert config_from_values(Root(), data, "config") == Root(10, Leaf(1), Twin(1, Leaf(name="x")))
    assert config_from_values(Root(), {}, "config") == Root()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"config is \[\]; accepted: an object with steps, leaf, twin"),
        ({"leaf": 3}, "leaf is 3; accepted: an object with rate, name"),
        ({"leaf": {"rat": 3}}, "leaf has a field 'rat'; accepted: rate, name"),
        ({"twin": {"steps": "3"}}, "--steps is '3'; accepted: a value of type int"),
    ],
)
def test_config_from_values_rejects_wrong_data(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        config_from_values(Root(), data, "config")
