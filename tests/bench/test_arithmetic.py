"""FLOPs of a training step, compared with sums worked out by hand."""

import dataclasses

import pytest
import torch

from expgen.bench.arithmetic import flops_per_step, peak_flops
from expgen.runs.make_config import make_config

CELLS, FEATURES, ACTIONS, STEPS = 11 * 11 * 3, 16, 5, 8


def test_flops_of_ppo_are_forward_for_acting_and_three_times_forward_per_epoch() -> None:
    """Layers 363 × 16, 16 × 16, 16 × 6; each gradient of a product costs a product, but the first layer's input needs
    none. The rollout evaluates one step more than it learns from."""
    config = make_config("minimaze", "ppo", "smoke", features=FEATURES, epochs=3, minibatches=2)
    first, rest = 2 * CELLS * FEATURES, 2 * (FEATURES * FEATURES + FEATURES * (ACTIONS + 1))
    forward, update = first + rest, 2 * first + 3 * rest
    flops = flops_per_step(config)
    assert flops.acting == pytest.approx(forward * (STEPS + 1) / STEPS, rel=0.02)
    assert flops.learning == pytest.approx(3 * update, rel=0.02)
    assert flops.total == flops.acting + flops.learning


def test_flops_of_ppg_do_not_depend_on_the_frequency_of_auxiliary_phases() -> None:
    config = make_config("minimaze", "ppg", "smoke", features=FEATURES)
    ppo = flops_per_step(make_config("minimaze", "ppo", "smoke", features=FEATURES))
    assert flops_per_step(config).total > 1.5 * ppo.total
    rarer = dataclasses.replace(config, algorithm=dataclasses.replace(config.algorithm, policy_phases=7))  # type: ignore[call-arg]
    assert flops_per_step(rarer) == flops_per_step(config)


def test_peak_flops_is_a_rate() -> None:
    assert peak_flops(torch.device("cpu"), 0.01) > 1e8
