"""Resuming a learner from its checkpoint gives the same result as an uninterrupted run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from expgen.evaluation.scores import read_scores
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner_state import resume_learner
from expgen.training.metrics import MetricsFile
from tests.training.small_learners import TINY_PROCGEN, on_procgen, run_learner, small_learner

ALGORITHMS = ["ppo", "ppo-gru", "mixed", "leep", "plr", "ucb-drac"]


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_resumed_learner_ends_with_the_same_state(
    algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    whole = run_learner(small_learner(small, 6, algo=algo), tmp_path / "whole")
    parts = []
    for stop_after in (1, 2, 3):
        learner = small_learner(small, 6, algo=algo)
        if checkpoint := latest_checkpoint(tmp_path / "parts"):
            resume_learner(learner, checkpoint)
        parts += run_learner(learner, tmp_path / "parts", stop_after)
    a, b = latest_checkpoint(tmp_path / "whole"), latest_checkpoint(tmp_path / "parts")
    assert a is not None and b is not None and equal(a.tensors, b.tensors)
    for row in (*whole, *parts):
        row.pop("seconds")
    assert parts == whole and len(whole) == 6


def test_checkpoint_from_another_device_type_resumes_with_a_new_seed(small: Any, tmp_path: Path) -> None:
    run_learner(small_learner(small, 2), tmp_path, stop_after=1)
    checkpoint, learner = latest_checkpoint(tmp_path), small_learner(small, 2)
    assert checkpoint is not None
    fresh = learner.generator.get_state()
    checkpoint.tensors["generator"] = torch.zeros(16, dtype=torch.uint8)  # size of a GPU generator's state
    resume_learner(learner, checkpoint)
    assert not torch.equal(learner.generator.get_state(), fresh)
    assert len(run_learner(learner, tmp_path)) == 1


@on_procgen
@pytest.mark.parametrize("algo", ["leep", "plr"])
def test_level_replay_resumes_exactly_on_procgen(
    algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    changes = {**TINY_PROCGEN, "algo": algo, "levels": "3:5", "encoder": "small", "minibatches": 1}
    small.train(tmp_path / "whole", 2, **changes)
    stops = iter([False, True])
    small.train(tmp_path / "parts", 2, **changes, should_stop=lambda: next(stops))
    assert small.facts(tmp_path / "parts")["updates"] == 1
    small.train(tmp_path / "parts", 2, **changes, resume=True)
    whole = small.state(tmp_path / "whole")
    assert small.facts(tmp_path / "whole")["updates"] == 4 and equal(whole, small.state(tmp_path / "parts"))
    assert torch.equal(whole["levels.assigned"], whole["levels.assigned"].clamp(3, 7))
    if algo == "plr":
        assert whole["levels.seen"].any() and whole["levels.score"].any()


@on_procgen
def test_procgen_run_resumes_exactly(small: Any, equal: Callable[..., bool], tmp_path: Path) -> None:
    gaps = {"levels": "3,5,8", "algo": "ppo-gru"}  # not a range, so the binding chooses the levels
    small.train(tmp_path / "whole", 1, **TINY_PROCGEN | gaps)
    stops = iter([False, True])
    stopped = small.train(tmp_path / "parts", 1, **TINY_PROCGEN | gaps, should_stop=lambda: next(stops))
    assert not stopped.is_complete and small.facts(tmp_path / "parts")["updates"] == 1
    assert small.train(tmp_path / "parts", 1, **TINY_PROCGEN | gaps, resume=True).is_complete
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "parts"))


@on_procgen
def test_procgen_with_generated_assets_trains_and_resumes(small: Any, tmp_path: Path) -> None:
    options = {"options": {"use_generated_assets": True}, "eval_every": 10**9, "eval_episodes": 1}
    stops = iter([False, True])
    small.train(tmp_path, 1, **TINY_PROCGEN | options, should_stop=lambda: next(stops))
    assert not any(name.startswith("env.") for name in small.state(tmp_path))
    assert small.train(tmp_path, 1, **TINY_PROCGEN | options, resume=True).is_complete
    assert small.facts(tmp_path)["updates"] == 2
    assert [row.split for row in read_scores(tmp_path / "scores.csv")] == ["train", "test"]


@pytest.mark.parametrize("algo", ["ppo-gru", "plr"])
def test_resume_starts_new_episodes_when_games_cannot_be_restored(algo: str, small: Any, tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    cart = {"env": "gymnasium:CartPole-v1", "algo": algo, "levels": "50"}
    stops = iter([False, True])
    small.train(tmp_path, **cart, should_stop=lambda: next(stops))
    before = small.weights(tmp_path)
    assert small.train(tmp_path, **cart, resume=True).is_complete
    after, facts = small.state(tmp_path), small.facts(tmp_path)
    assert facts["updates"] == 4 and facts["env_steps"] == 4 * small.update_steps
    assert any(not torch.equal(before[name], after[name]) for name in before)
    total, length = after["episodes.recent"][:, 0], after["episodes.recent"][:, 1]
    assert len(length) and torch.equal(total, length)  # the reward is 1 per step: no episode was half counted
    env_steps = [int(row["env_steps"]) for row in MetricsFile(tmp_path / "metrics.csv").rows()]
    assert env_steps == [small.update_steps * n for n in (1, 2, 3, 4)]
