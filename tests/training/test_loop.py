"""train_learner: independent of other learners; when it scores, saves and stops."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from expgen.algorithms.recipes import RECIPES
from expgen.evaluation.scores import read_scores
from expgen.reward.source import GameReward
from expgen.rollout.rollout import Rollout
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner import Diverged
from tests.training.small_learners import TINY_PROCGEN, on_procgen, run_learner, small_learner


@pytest.mark.parametrize("algo", ["ppo", "ppo-gru", "plr"])
def test_weights_do_not_depend_on_other_learners(
    algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    small.train(tmp_path / "alone", algo=algo)
    small.train(tmp_path / "three", algo=algo, members=3)
    small.train(tmp_path / "scored", algo=algo, eval_every=small.update_steps)
    small.train(tmp_path / "third", algo=algo, seed=2)
    alone = small.state(tmp_path / "alone")
    assert equal(alone, small.state(tmp_path / "three"))
    assert equal(alone, small.state(tmp_path / "scored"))
    assert equal(small.state(tmp_path / "third"), small.state(tmp_path / "three", "member2"))
    assert not equal(small.weights(tmp_path / "third"), small.weights(tmp_path / "alone"))
    assert len(read_scores(tmp_path / "scored" / "scores.csv")) == 2


@on_procgen
def test_weights_do_not_depend_on_other_learners_on_procgen(
    small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    small.train(tmp_path / "alone", 1, **TINY_PROCGEN)
    small.train(tmp_path / "two", 1, **TINY_PROCGEN, members=2)
    assert small.facts(tmp_path / "alone")["updates"] == 2
    assert equal(small.state(tmp_path / "alone"), small.state(tmp_path / "two"))


def test_learner_is_scored_at_multiples_of_eval_every_and_at_the_end(small: Any, tmp_path: Path) -> None:
    for every, due in ((0, []), (128, [1, 2, 3, 4, 5]), (200, [2, 4, 5]), (10_000, [5])):
        rows = run_learner(small_learner(small, 5, eval_every=every), tmp_path / str(every))
        assert [number for number, row in enumerate(rows, 1) if "test_return" in row] == due


def test_checkpoints_are_written_every_checkpoint_seconds_and_at_the_end(small: Any, tmp_path: Path) -> None:
    run_learner(small_learner(small, 3, checkpoint_seconds=3600.0), tmp_path / "rare")
    run_learner(small_learner(small, 3, checkpoint_seconds=0.0), tmp_path / "often")
    assert len(list((tmp_path / "rare").iterdir())) == 1 and len(list((tmp_path / "often").iterdir())) == 2


def test_learner_stopped_at_once_saves_its_initial_weights(small: Any, tmp_path: Path) -> None:
    learner = small_learner(small)
    before = {name: tensor.clone() for name, tensor in learner.algorithm.policy.state_dict().items()}
    assert run_learner(learner, tmp_path, stop_after=0) == []
    checkpoint = latest_checkpoint(tmp_path)
    assert checkpoint is not None and checkpoint.facts["env_steps"] == 0
    assert all(torch.equal(before[name], checkpoint.tensors[f"policy.{name}"]) for name in before)


class NanReward(GameReward):
    """The game's reward in the first rollout, then NaN."""

    rollouts = 0

    def __call__(self, rollout: Rollout) -> Tensor:
        self.rollouts += 1
        reward = super().__call__(rollout)
        return reward if self.rollouts < 2 else reward * np.nan


def test_diverged_learner_keeps_its_last_checkpoint_and_other_learners_continue(
    small: Any, equal: Callable[..., bool], command: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    small.train(tmp_path / "alone")
    built: list[object] = []

    def reward(config: Any, num_envs: int) -> GameReward:
        built.append(None)
        return (GameReward, NanReward)[len(built) - 1](config, num_envs)

    monkeypatch.setitem(RECIPES, "ppo", dataclasses.replace(RECIPES["ppo"], build_reward=reward))
    outcome = command(*small.flags(tmp_path / "two", members=2))
    assert outcome.status == 1 and "Traceback" not in outcome.err
    assert f"member1 diverged at {2 * small.update_steps} steps: its loss is nan" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("expgen: member1 diverged; the last good checkpoint is in")
    assert equal(small.state(tmp_path / "alone"), small.state(tmp_path / "two"))
    assert small.facts(tmp_path / "two", "member1")["updates"] == 1
    assert all(tensor.isfinite().all() for tensor in small.weights(tmp_path / "two", "member1").values())


def test_overflowing_gradient_raises_diverged_before_a_checkpoint_is_written(small: Any, tmp_path: Path) -> None:
    learner = small_learner(small, minibatches=1)
    algorithm: Any = learner.algorithm
    step = algorithm.step
    algorithm.step = lambda batch: {**step(batch), "grad_norm": torch.tensor(torch.inf)}
    with pytest.raises(Diverged, match="member0 diverged at 128 steps: its grad_norm is inf"):
        run_learner(learner, tmp_path)
    assert latest_checkpoint(tmp_path) is None
