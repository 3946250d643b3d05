"""One learner's life: the same whoever trains beside it, and the same after any interruption."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from expgen.algorithms.algorithm import RECIPES
from expgen.envs.library import is_installed
from expgen.evaluation.scores import read_scores
from expgen.experiments.plan import build_learner, plans_of
from expgen.experiments.run import make_config
from expgen.reward.source import GameReward
from expgen.rollout.rollout import Rollout
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner import Diverged, Learner
from expgen.training.metrics import MetricsFile
from expgen.training.resources import Resources

TINY_PROCGEN = {"env": "procgen:bigfish", "envs": 4, "minibatches": 2}  # random fish do not live long
CPU = Resources(torch.device("cpu"), torch_threads=1, env_threads=1, updates_at_once=1)


def on_procgen(test: Any) -> Any:
    """Marks a test that needs the library."""
    is_missing = pytest.mark.skipif(not is_installed(), reason="no ProcGen library")
    return pytest.mark.procgen(is_missing(test))


def small_learner(small: Any, updates: int = 4, **changes: Any) -> Learner:
    settings = {name: value for name, value in small.settings.items() if name != "device"}
    config = make_config(**{**settings, "steps": updates * small.update_steps, **changes})
    return build_learner(config, plans_of(config)[0], CPU)


def live(learner: Learner, folder: Path, stop_after: int | None = None) -> list[dict[str, float]]:
    """Let it run, to its end or for so many updates; the rows it reports."""
    rows: list[dict[str, float]] = []

    def score(policy: Any) -> Any:
        yield
        return {"test_return": 1.0}

    for _ in learner.run(score, lambda name, row: rows.append(row), folder, lambda: len(rows) == stop_after):
        pass
    return rows


ALGORITHMS = ["ppo", "ppo-gru", "leep", "plr", "ucb-drac"]


@pytest.mark.parametrize("algo", ["ppo", "ppo-gru", "plr"])
def test_weights_do_not_depend_on_who_trains_beside(
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
def test_weights_do_not_depend_on_who_trains_beside_on_procgen(
    small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    small.train(tmp_path / "alone", 1, **TINY_PROCGEN)
    small.train(tmp_path / "two", 1, **TINY_PROCGEN, members=2)
    assert small.facts(tmp_path / "alone")["updates"] == 2
    assert equal(small.state(tmp_path / "alone"), small.state(tmp_path / "two"))


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_interrupted_anywhere_it_ends_the_same(
    algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path
) -> None:
    whole = live(small_learner(small, 6, algo=algo), tmp_path / "whole")
    parts = []
    for stop_after in (1, 2, 3):
        learner = small_learner(small, 6, algo=algo)
        if checkpoint := latest_checkpoint(tmp_path / "parts"):
            learner.resume(checkpoint)
        parts += live(learner, tmp_path / "parts", stop_after)
    a, b = latest_checkpoint(tmp_path / "whole"), latest_checkpoint(tmp_path / "parts")
    assert a is not None and b is not None and equal(a.tensors, b.tensors)
    for row in (*whole, *parts):
        row.pop("seconds")
    assert parts == whole and len(whole) == 6


def test_a_checkpoint_of_another_kind_of_device_goes_on_with_new_random_numbers(small: Any, tmp_path: Path) -> None:
    live(small_learner(small, 2), tmp_path, stop_after=1)
    checkpoint, learner = latest_checkpoint(tmp_path), small_learner(small, 2)
    assert checkpoint is not None
    fresh = learner.generator.get_state()
    checkpoint.tensors["generator"] = torch.zeros(16, dtype=torch.uint8)  # as a GPU's
    learner.resume(checkpoint)
    assert not torch.equal(learner.generator.get_state(), fresh)
    assert len(live(learner, tmp_path)) == 1


@on_procgen
@pytest.mark.parametrize("algo", ["leep", "plr"])
def test_levels_chosen_by_the_learner_resume_exactly_on_procgen(
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
def test_a_procgen_run_resumes_exactly(small: Any, equal: Callable[..., bool], tmp_path: Path) -> None:
    gaps = {"levels": "3,5,8", "algo": "ppo-gru"}  # a set whose levels we replace by hand
    small.train(tmp_path / "whole", 1, **TINY_PROCGEN | gaps)
    stops = iter([False, True])
    stopped = small.train(tmp_path / "parts", 1, **TINY_PROCGEN | gaps, should_stop=lambda: next(stops))
    assert not stopped.is_complete and small.facts(tmp_path / "parts")["updates"] == 1
    assert small.train(tmp_path / "parts", 1, **TINY_PROCGEN | gaps, resume=True).is_complete
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "parts"))


@on_procgen
def test_games_with_generated_assets_train_and_resume(small: Any, tmp_path: Path) -> None:
    options = {"options": {"use_generated_assets": True}, "eval_every": 10**9, "eval_episodes": 1}
    stops = iter([False, True])
    small.train(tmp_path, 1, **TINY_PROCGEN | options, should_stop=lambda: next(stops))
    assert not any(name.startswith("env.") for name in small.state(tmp_path))
    assert small.train(tmp_path, 1, **TINY_PROCGEN | options, resume=True).is_complete
    assert small.facts(tmp_path)["updates"] == 2
    assert [row.split for row in read_scores(tmp_path / "scores.csv")] == ["train", "test"]


@pytest.mark.parametrize("algo", ["ppo-gru", "plr"])
def test_games_that_cannot_be_restored_start_new_episodes(algo: str, small: Any, tmp_path: Path) -> None:
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
    assert len(length) and torch.equal(total, length)  # CartPole pays 1 a step: no episode was half counted
    env_steps = [int(row["env_steps"]) for row in MetricsFile(tmp_path / "metrics.csv").rows()]
    assert env_steps == [small.update_steps * n for n in (1, 2, 3, 4)]


def test_scores_are_due_when_a_multiple_is_passed_and_at_the_end(small: Any, tmp_path: Path) -> None:
    for every, due in ((0, []), (128, [1, 2, 3, 4, 5]), (200, [2, 4, 5]), (10_000, [5])):
        rows = live(small_learner(small, 5, eval_every=every), tmp_path / str(every))
        assert [number for number, row in enumerate(rows, 1) if "test_return" in row] == due


def test_checkpoints_come_with_the_seconds_and_at_the_end(small: Any, tmp_path: Path) -> None:
    live(small_learner(small, 3, checkpoint_seconds=3600.0), tmp_path / "rare")
    live(small_learner(small, 3, checkpoint_seconds=0.0), tmp_path / "often")
    assert len(list((tmp_path / "rare").iterdir())) == 1 and len(list((tmp_path / "often").iterdir())) == 2


def test_a_learner_that_is_told_to_stop_at_once_saves_itself_unchanged(small: Any, tmp_path: Path) -> None:
    learner = small_learner(small)
    before = {name: tensor.clone() for name, tensor in learner.algorithm.policy.state_dict().items()}
    assert live(learner, tmp_path, stop_after=0) == []
    checkpoint = latest_checkpoint(tmp_path)
    assert checkpoint is not None and checkpoint.facts["env_steps"] == 0
    assert all(torch.equal(before[name], checkpoint.tensors[f"policy.{name}"]) for name in before)


class Poison(GameReward):
    """The game's reward until the second rollout, then no numbers at all."""

    rollouts = 0

    def __call__(self, rollout: Rollout) -> Tensor:
        self.rollouts += 1
        reward = super().__call__(rollout)
        return reward if self.rollouts < 2 else reward * np.nan


def test_a_diverged_learner_keeps_its_last_good_checkpoint_and_its_neighbour_goes_on(
    small: Any, equal: Callable[..., bool], command: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    small.train(tmp_path / "alone")
    built: list[object] = []

    def reward(config: Any, num_envs: int) -> GameReward:
        built.append(None)
        return (GameReward, Poison)[len(built) - 1](config, num_envs)

    monkeypatch.setitem(RECIPES, "ppo", dataclasses.replace(RECIPES["ppo"], build_reward=reward))
    outcome = command(*small.flags(tmp_path / "two", members=2))
    assert outcome.status == 1 and "Traceback" not in outcome.err
    assert f"member1 diverged at {2 * small.update_steps} steps: its loss is nan" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("expgen: member1 diverged; the last good checkpoint is in")
    assert equal(small.state(tmp_path / "alone"), small.state(tmp_path / "two"))
    assert small.facts(tmp_path / "two", "member1")["updates"] == 1
    assert all(tensor.isfinite().all() for tensor in small.weights(tmp_path / "two", "member1").values())


def test_a_gradient_that_overflows_is_noticed_before_it_is_saved(small: Any, tmp_path: Path) -> None:
    learner = small_learner(small, minibatches=1)
    algorithm: Any = learner.algorithm
    step = algorithm.step
    algorithm.step = lambda batch: {**step(batch), "grad_norm": torch.tensor(torch.inf)}
    with pytest.raises(Diverged, match="member0 diverged at 128 steps: its grad_norm is inf"):
        live(learner, tmp_path)
    assert latest_checkpoint(tmp_path) is None
