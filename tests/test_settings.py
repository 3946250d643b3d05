"""Settings: ranges, choices, nested configs."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from expgen.algorithms.ppo import PPOConfig
from expgen.errors import InputError
from expgen.settings import changed_default, check_config, flag_of, setting


@dataclass(frozen=True)
class Inner:
    share: float = setting(0.5, "a share", low=0, high=1)


@dataclass(frozen=True)
class Outer:
    count_of_things: int = setting(2, "a count", low=1)
    order: Literal["up", "down"] = setting("up", "an order")
    is_loud: bool = setting(False, "a claim")
    name: str = setting("x", "a word")
    free: float = setting(-5.0, "any number")
    inner: Inner = Inner()


@dataclass(frozen=True)
class Special(Inner):
    share: float = changed_default(Inner, "share", 0.25)


@dataclass(frozen=True)
class Spoken(Inner):
    share: float = changed_default(Inner, "share", 0.5, "a larger share")


def test_changed_default_keeps_range_and_help():
    assert (Inner().share, Special().share) == (0.5, 0.25)
    assert [dataclasses.fields(kind)[0].metadata["help"] for kind in (Special, Spoken)] == ["a share", "a larger share"]
    for kind in (Special, Spoken):
        with pytest.raises(InputError, match="--share is 2; accepted: 0 to 1"):
            check_config(kind(2))


def test_setting_names_become_flags():
    assert flag_of("entropy_coef") == "--entropy-coef"


def test_defaults_and_ends_of_ranges_are_accepted():
    check_config(Outer())
    check_config(PPOConfig())
    check_config(Outer(count_of_things=1, order="down", is_loud=True, free=10**9, inner=Inner(0)))
    check_config(Outer(inner=Inner(1)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count_of_things": 0}, r"--count-of-things is 0; accepted: 1 or more"),
        ({"inner": Inner(1.01)}, r"--share is 1.01; accepted: 0 to 1"),
        ({"inner": Inner(-0.01)}, r"--share is -0.01; accepted: 0 to 1"),
        ({"inner": Inner(float("nan"))}, r"--share is nan; accepted: a finite number"),
        ({"free": float("nan")}, r"--free is nan; accepted: a finite number"),
        ({"free": float("inf")}, r"--free is inf; accepted: a finite number"),
        ({"count_of_things": 2.0}, r"--count-of-things is 2.0; accepted: a value of type int"),
        ({"count_of_things": True}, r"--count-of-things is True; accepted: a value of type int"),
        ({"is_loud": 1}, r"--is-loud is 1; accepted: a value of type bool"),
        ({"free": "3"}, r"--free is '3'; accepted: a value of type float"),
        ({"order": "sideways"}, r"--order is 'sideways'; accepted: up, down"),
    ],
)
def test_check_config_names_wrong_settings(changes: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        check_config(dataclasses.replace(Outer(), **changes))


@pytest.mark.parametrize(
    "changes",
    [{"gamma": 1.5}, {"gae_lambda": -0.1}, {"epochs": 0}, {"minibatches": 0}, {"learning_rate": float("nan")},
     {"clip": -0.2}, {"max_grad_norm": -1.0}, {"minibatch_order": "rows"}],
)  # fmt: skip
def test_ppo_settings_have_ranges(changes: dict[str, Any]):
    with pytest.raises(InputError, match=flag_of(next(iter(changes)))):
        check_config(PPOConfig(**changes))
