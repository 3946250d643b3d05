"""The settings that every algorithm shares: each has them, in one place of config.json, within the same limits."""

import dataclasses
from typing import Any

import pytest
import torch

from expgen.algorithms.algorithm import RECIPES
from expgen.algorithms.learning import LearningConfig, passes
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
    """Also where an algorithm has a default of its own: `own_default` keeps the limits."""
    flag = "--" + name.replace("_", "-")
    with pytest.raises(InputError, match=f"{flag} is .*; accepted: {accepted}"):
        make_config(algo=algo, **{name: value})


def test_a_walk_over_a_rollout_meets_every_transition_once_an_epoch(toy: Any) -> None:
    rollout, config = toy.rollout(), LearningConfig(epochs=3, minibatches=2, minibatch_order="shuffled")
    size = toy.num_steps * toy.num_envs
    walk = list(passes(rollout, config, torch.Generator().manual_seed(0)))
    assert len(walk) == 6
    epochs = [torch.cat([place for _, place in walk[at : at + 2]]) for at in (0, 2, 4)]
    assert all(epoch.sort().values.equal(torch.arange(size)) for epoch in epochs)
    assert not epochs[0].equal(epochs[1])
    whole = walk[0][0]
    assert whole.advantage.mean().item() == pytest.approx(0, abs=1e-6)
    assert whole.advantage.std().item() == pytest.approx(1, abs=1e-5)
    assert whole.obs.data_ptr() == rollout.obs.data_ptr()  # nothing is copied
