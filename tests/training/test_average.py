"""Averaged weights: worked by hand, compared with the formula, and without effect on training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from expgen.networks.state import under_prefix
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.average import AveragedPolicy
from expgen.training.checkpoint import Checkpoint, latest_checkpoint
from expgen.training.learner_state import resume_learner
from expgen.training.resources import Resources
from tests.training.small_learners import run_learner, small_learner

ALGORITHMS = ["ppo", "ppo-gru", "maxent", "leep", "ucb-drac", "idaac", "ppg"]  # dense, plain, joint and decoupled


needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def newest(folder: Path) -> Checkpoint:
    found = latest_checkpoint(folder)
    assert found is not None
    return found


def test_average_of_three_updates_matches_hand_calculation() -> None:
    live_policy: Any = nn.Linear(1, 1, bias=False)
    weight = live_policy.weight
    with torch.no_grad():
        weight.fill_(1000.0)  # initial weights do not count
        average = AveragedPolicy(live_policy, rate=0.5)
        expected = [
            (4.0, 4.0),  # 4
            (1.0, 2.0),  # (0.5 · 4 + 1) / (0.5 + 1)
            (9.0, 6.0),  # (0.25 · 4 + 0.5 · 1 + 9) / (0.25 + 0.5 + 1)
        ]
        for number, (value, mean) in enumerate(expected, start=1):
            weight.fill_(value)
            average.update()
            averaged = average.state()["average.weight"]
            assert averaged.item() == pytest.approx(mean, rel=1e-6) and weight.item() == value
            assert average.facts() == {"average": {"rate": 0.5, "updates": number}}
        assert not averaged.requires_grad


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_average_is_the_weighted_mean_of_weights_after_updates(algo: str, small: Any, tmp_path: Path) -> None:
    learner, rate = small_learner(small, 4, algo=algo, average=0.9), 0.9
    after_update: list[dict[str, Tensor]] = []
    for number in range(1, 5):
        run_learner(learner, tmp_path, stop_after=1)
        after_update.append(under_prefix("policy", newest(tmp_path).tensors))
        averaged = under_prefix("average", newest(tmp_path).tensors)
        share = [rate ** (number - 1 - i) for i in range(number)]
        assert averaged.keys() == after_update[0].keys()
        for name, tensor in averaged.items():
            mean = sum(s * weights[name].double() for s, weights in zip(share, after_update, strict=True)) / sum(share)
            torch.testing.assert_close(tensor.double(), mean, rtol=1e-5, atol=1e-7)
    assert any(not torch.equal(averaged[name], after_update[-1][name]) for name in averaged)
    learner.close()


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("algo", ["ppo", "maxent"])
def test_average_on_a_gpu_is_the_weighted_mean_of_live_weights(algo: str, small: Any) -> None:
    settings = {name: value for name, value in small.settings.items() if name != "device"}
    images = {"options": {"max_cells": 20}, "encoder": "impala", "features": 32, "algo": algo, "average": 0.5}
    config = make_config(**{**settings, "steps": 3 * small.update_steps, **images})
    resources = Resources(torch.device("cuda"), torch_threads=1, env_threads=1, updates_at_once=1)
    learner = build_learner(config, plans_of(config)[0], resources)
    after_update = []
    for _ in range(3):
        list(learner.iterate())
        after_update.append([weight.double().clone() for weight in learner.algorithm.policy.parameters()])
    for averaged, one, two, three in zip(learner.policies()["average"].parameters(), *after_update, strict=True):
        torch.testing.assert_close(averaged.double(), (one + 2 * two + 4 * three) / 7, rtol=1e-5, atol=1e-7)
    learner.close()


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_averaging_does_not_change_training(algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path) -> None:
    for name, rate in (("without", 0.0), ("with", 0.9)):
        run_learner(small_learner(small, 3, algo=algo, average=rate), tmp_path / name)
    without, with_average = newest(tmp_path / "without"), newest(tmp_path / "with")
    extra = with_average.tensors.keys() - without.tensors.keys()
    assert extra and all(name.startswith("average.") for name in extra)
    assert equal(without.tensors, {name: with_average.tensors[name] for name in with_average.tensors.keys() - extra})
    assert with_average.facts.keys() - without.facts.keys() == {"average"}
    assert not any(name.startswith("average") for name in (*without.tensors, *without.facts))


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_resumed_run_ends_with_the_same_average(
    algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    run_learner(small_learner(small, 4, algo=algo, average=0.9), tmp_path / "whole")
    for stop_after in (1, 2, 1):
        learner = small_learner(small, 4, algo=algo, average=0.9)
        if checkpoint := latest_checkpoint(tmp_path / "parts"):
            resume_learner(learner, checkpoint)
        run_learner(learner, tmp_path / "parts", stop_after)
    whole, parts = newest(tmp_path / "whole"), newest(tmp_path / "parts")
    assert equal(whole.tensors, parts.tensors) and under_prefix("average", whole.tensors)
    assert whole.facts["average"] == parts.facts["average"] == {"rate": 0.9, "updates": 4}


def test_average_starts_when_resuming_from_a_checkpoint_without_one(
    small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    run_learner(small_learner(small, 3), tmp_path, stop_after=1)
    learner = small_learner(small, 3, average=0.9)
    resume_learner(learner, newest(tmp_path))
    assert list(learner.policies()) == ["live"]  # no average yet to score or save
    run_learner(learner, tmp_path, stop_after=1)
    tensors, facts = newest(tmp_path)
    assert equal(under_prefix("average", tensors), under_prefix("policy", tensors))
    assert facts["average"]["updates"] == 1 and list(learner.policies()) == ["live", "average"]
