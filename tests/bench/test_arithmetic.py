"""The arithmetic of a training step, counted: against sums by hand."""

import dataclasses

import pytest
import torch

from expgen.bench.arithmetic import flops_per_step, peak_flops
from expgen.runs.make_config import make_config

CELLS, FEATURES, ACTIONS, STEPS = 11 * 11 * 3, 16, 5, 8


def test_ppo_is_acting_and_three_times_forward_in_every_epoch() -> None:
    """Layers 363 × 16, 16 × 16, 16 × 6; gradients of the products cost a product each, but the first layer's input
    wants none. The rollout has one step more to judge than to learn from."""
    config = make_config("minimaze", "ppo", "smoke", features=FEATURES, epochs=3, minibatches=2)
    first, rest = 2 * CELLS * FEATURES, 2 * (FEATURES * FEATURES + FEATURES * (ACTIONS + 1))
    forward, update = first + rest, 2 * first + 3 * rest
    flops = flops_per_step(config)
    assert flops.acting == pytest.approx(forward * (STEPS + 1) / STEPS, rel=0.02)
    assert flops.learning == pytest.approx(3 * update, rel=0.02)
    assert flops.total == flops.acting + flops.learning


def test_ppg_counts_its_auxiliary_phase_whenever_it_comes() -> None:
    config = make_config("minimaze", "ppg", "smoke", features=FEATURES)
    ppo = flops_per_step(make_config("minimaze", "ppo", "smoke", features=FEATURES))
    assert flops_per_step(config).total > 1.5 * ppo.total
    rarer = dataclasses.replace(config, algorithm=dataclasses.replace(config.algorithm, policy_phases=7))  # type: ignore[call-arg]
    assert flops_per_step(rarer) == flops_per_step(config)


def test_the_peak_is_a_rate() -> None:
    assert peak_flops(torch.device("cpu"), 0.01) > 1e8
