"""The settings shared by all algorithms come first in every config and have the same ranges."""

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
def test_every_config_starts_with_the_shared_settings(algo: str) -> None:
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
def test_every_algorithm_rejects_settings_out_of_range(algo: str, name: str, value: Any, accepted: str) -> None:
    """`changed_default` keeps the range."""
    flag = "--" + name.replace("_", "-")
    with pytest.raises(InputError, match=f"{flag} is .*; accepted: {accepted}"):
        make_config(algo=algo, **{name: value})


@pytest.mark.parametrize(
    ("algo", "name"),
    [("ppg", "policy_phases"), ("ppg", "aux_columns"), ("ucb-drac", "ucb_window"), ("idaac", "order_hidden")],
)
def test_config_rejects_sizes_too_large_for_memory(algo: str, name: str) -> None:
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} is 1000.*; accepted: [01] to "):
        make_config("minimaze", algo, **{name: 10**23})
