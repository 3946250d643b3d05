"""Level replay beside other algorithms than PLR: scores, exact resume, independence of other learners, a whole run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import expgen
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.rollout.level_replay import LevelReplay
from expgen.runs.folder import RunFolder
from expgen.training.metrics import MetricsFile
from tests.training.small_learners import on_procgen, small_learner

# short episodes, of which few levels suffice to begin replay
REPLAY: dict[str, Any] = {
    "level_replay": True,
    "replay_threshold": 0.2,
    "rank_temperature": 1.0,
    "options": {"max_cells": 2, "time_limit": 7},
}
PHASES: dict[str, dict[str, Any]] = {
    "daac": {"value_epochs": 2, "value_every": 2},
    "idaac": {"value_epochs": 2, "value_every": 2, "mirror": True},
    "ppg": {"policy_phases": 3, "aux_epochs": 2},
}


def train_in_sessions(small: Any, run: Path, updates: int, cuts: tuple[int, ...], **settings: Any) -> None:
    """Train a run in several sessions, each resumed from the last checkpoint by a new learner."""
    for cut in cuts:
        stops = iter([False] * cut + [True])
        small.train(run, updates, **settings, resume=True, should_stop=stops.__next__)
    assert small.train(run, updates, **settings, resume=True).is_complete


@pytest.mark.parametrize("algo", ["daac", "idaac", "ppg"])
def test_scores_of_levels_are_errors_of_the_value_network(algo: str, small: Any):
    """V = ½ everywhere and γ = λ = 1: |R − V| is 9.5 before a goal, 0.5 before a time-out, 0 before the rollout's end.

    The value head of the policy network, which predicts advantages (DAAC) or V_aux (PPG), is not part of the score.
    """
    plain = {"gamma": 1.0, "gae_lambda": 1.0, "normalize_reward": False, "rollout_steps": 40, "levels": "50"}
    learner = small_learner(small, algo=algo, **{**REPLAY, **plain})
    assert learner.algorithm.value_network is not None and learner.director is not None
    for network, value in ((learner.algorithm.value_network, 0.5), (learner.algorithm.policy, 100.0)):
        torch.nn.init.zeros_(network.value_head.weight)
        torch.nn.init.constant_(network.value_head.bias, value)
    chooser, rollout = learner.director.chooser, learner.rollout
    assert isinstance(chooser, LevelReplay)
    list(learner.iterate())
    expected, unfinished = {}, {}
    for env in range(rollout.num_envs):
        begin = 0
        for t in range(1, rollout.num_steps + 1):
            level = int(rollout.host_level[begin, env])
            if rollout.host_first[t, env]:
                expected[level] = 9.5 if rollout.host_reward[t - 1, env] else 0.5
                begin = t
        if begin < rollout.num_steps:
            unfinished[int(rollout.host_level[begin, env])] = 0.0
    expected |= unfinished
    assert {0.0, 0.5, 9.5} == set(expected.values())
    scored = {int(chooser.levels[index]): chooser.score[index] for index in chooser.seen.nonzero()[0]}
    assert scored == pytest.approx(expected, abs=1e-5)
    learner.close()


def test_ppo_with_level_replay_is_plr(small: Any, equal: Callable[..., bool], tmp_path: Path):
    settings = {name: value for name, value in REPLAY.items() if name != "level_replay"}
    small.train(tmp_path / "plr", algo="plr", **settings)
    small.train(tmp_path / "ppo", algo="ppo", level_replay=True, advantage_epsilon=1e-5, **settings)
    state = small.state(tmp_path / "plr")
    assert equal(state, small.state(tmp_path / "ppo")) and state["levels.drawn"].item() > 0


@pytest.mark.parametrize("algo", ["ppo-gru", "ucb-drac", "mixed", *PHASES])
def test_resumed_run_ends_with_the_same_state(algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path):
    settings = {"algo": algo, **REPLAY, **PHASES.get(algo, {})}
    small.train(tmp_path / "whole", 7, **settings)
    train_in_sessions(small, tmp_path / "cut", 7, (1, 1, 2, 1), **settings)
    whole = small.state(tmp_path / "whole")
    assert small.facts(tmp_path / "cut")["updates"] == 7 and equal(whole, small.state(tmp_path / "cut"))
    assert whole["levels.seen"].sum() > 8 and whole["levels.drawn"].item() > 20


@pytest.mark.parametrize("algo", ["idaac", "ppg"])
def test_weights_do_not_depend_on_other_learners(algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path):
    settings = {"algo": algo, **REPLAY, **PHASES[algo]}
    small.train(tmp_path / "alone", 4, **settings)
    small.train(tmp_path / "two", 4, **settings, members=2)
    one, two = small.state(tmp_path / "two"), small.state(tmp_path / "two", "member1")
    assert equal(small.state(tmp_path / "alone"), one)
    assert not torch.equal(one["levels.score"], two["levels.score"])


@on_procgen
@pytest.mark.parametrize("algo", PHASES)
def test_procgen_run_resumes_exactly(algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path):
    tiny = {"env": "procgen:bigfish", "envs": 4, "rollout_steps": 32, "encoder": "small", "levels": "3:5", "steps": 640}
    settings = {"algo": algo, **REPLAY, "options": {}, **PHASES[algo], **tiny}
    small.train(tmp_path / "whole", **settings)
    train_in_sessions(small, tmp_path / "cut", 1, (2, 2), **settings)
    whole = small.state(tmp_path / "whole")
    assert small.facts(tmp_path / "cut")["updates"] == 5 and equal(whole, small.state(tmp_path / "cut"))
    assert whole["levels.drawn"].item() > 0 and torch.equal(
        whole["levels.assigned"], whole["levels.assigned"].clamp(3, 7)
    )


def test_run_with_level_replay_is_named_by_its_settings(small: Any, command: Callable[..., Any], tmp_path: Path):
    first, again = tmp_path / "first", tmp_path / "again"
    flags = small.flags(first, algo="idaac", level_replay=True, rank_temperature=0.3, eval_every=2 * small.update_steps)
    assert command(*flags).status == 0
    assert all(row.settings == "level_replay=True" for row in read_scores(first / "scores.csv"))
    assert float(MetricsFile(first / "metrics.csv").rows()[-1]["levels_seen"]) > 0
    assert command("train", "--config", first / "config.json", "--run", again, "--device", "cpu").status == 0
    assert RunFolder(first).read_config()[0] == RunFolder(again).read_config()[0]
    with pytest.raises(InputError, match=r"--rank-temperature is 0\.2 but .* has 0\.3; accepted with --resume"):
        expgen.train(run=first, resume=True, rank_temperature=0.2)


def test_members_of_an_ensemble_train_with_level_replay(small: Any, tmp_path: Path):
    changes = {"algo": "expgen-idaac", "members": 2, "min_agree": 1, "eval_every": 4 * small.update_steps}
    small.train(tmp_path, **changes, level_replay=True, **small.explorer)
    assert "levels.score" in small.state(tmp_path) and "levels.score" not in small.state(tmp_path, "explorer")
    whole = [row for row in read_scores(tmp_path / "scores.csv") if row.agent == "expgen-idaac"]
    assert whole and all("level_replay=True" in row.settings for row in whole)


@on_procgen
@pytest.mark.parametrize("algo", ["idaac", "plr"])
def test_games_that_cannot_set_levels_are_refused_before_a_run_begins(algo: str, small: Any, tmp_path: Path):
    on = {"level_replay": True} if algo == "idaac" else {}
    with pytest.raises(InputError, match=r"cannot set levels as --algo or --level-replay asks; accepted: minimaze, "):
        small.train(tmp_path / "run", algo=algo, env="procgen:bigfish", options={"use_generated_assets": True}, **on)
    assert not (tmp_path / "run").exists()
