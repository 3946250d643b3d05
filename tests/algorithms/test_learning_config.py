"""The settings that every algorithm shares: each has them, in one place of config.json, within the same limits."""

import dataclasses
from typing import Any

import pytest

from expgen.algorithms.policy_gradient import LearningConfig
from expgen.algorithms.recipes import RECIPES
from expgen.errors import InputError
from expgen.runs.make_config import make_config

SHARED = [field.name for field in dataclasses.fields(LearningConfig)]
ALGOS = sorted(RECIPES)


@pytest.mark.parametrize("algo", ALGOS)
def test_every_algorithm_has_them_and_has_them_first(algo: str) -> None:
    config = RECIPES[algo].config
    assert isinstance(config, LearningConfig)
    assert [field.name for field in dataclasses.fields(config)][: len(SHARED)] == SHARED


@pytest.mark.parametrize("algo", ALGOS)
@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("gamma", 1.5, "0 to 1"),
        ("gae_lambda", -0.1, "0 to 1"),
        ("epochs", 0, "1 or more"),
        ("minibatches", 0, "1 or more"),
        ("minibatch_order", "rows", "columns, shuffled"),
        ("learning_rate", -1.0, "0 or more"),
        ("learning_rate", float("nan"), "a finite number"),
        ("clip", -0.2, "0 or more"),
    ],
)
def test_none_takes_what_is_out_of_range(algo: str, name: str, value: Any, accepted: str) -> None:
    """Also where an algorithm has a default of its own: `changed_default` keeps the limits."""
    flag = "--" + name.replace("_", "-")
    with pytest.raises(InputError, match=f"{flag} is .*; accepted: {accepted}"):
        make_config(algo=algo, **{name: value})


@pytest.mark.parametrize(
    ("algo", "name"),
    [("ppg", "policy_phases"), ("ppg", "aux_columns"), ("ucb-drac", "ucb_window"), ("idaac", "order_hidden")],
)
def test_sizes_that_no_machine_has_room_for_are_refused(algo: str, name: str) -> None:
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} is 1000.*; accepted: [01] to "):
        make_config("minimaze", algo, **{name: 10**23})
