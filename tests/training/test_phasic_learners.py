"""DAAC, IDAAC and PPG as learners: exact resume, independence, use as ensemble members, and learning."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import expgen
from expgen.agents.agent import UniformAgent
from expgen.agents.consensus import ConsensusAgent
from expgen.evaluation.scores import read_scores
from expgen.runs.folder import RunFolder
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner import Diverged
from expgen.training.learner_state import resume_learner, save_learner
from expgen.training.metrics import MetricsFile
from tests.policies import load_policy
from tests.training.small_learners import CPU, on_procgen, small_learner

# frequent phases, so that a few updates have several of each, not aligned with where the runs are interrupted
PHASIC: dict[str, dict[str, Any]] = {
    "daac": {"value_epochs": 2, "value_every": 2, "augmentation": "crop"},
    "idaac": {"value_epochs": 2, "value_every": 2, "order_hidden": 3},
    "ppg": {"policy_phases": 3, "aux_epochs": 2},
}


def train_in_sessions(small: Any, run: Path, updates: int, cuts: tuple[int, ...], **settings: Any) -> None:
    """Train a run in several sessions, each resumed from the last checkpoint by a new learner."""
    for cut in cuts:
        stops = iter([False] * cut + [True])
        small.train(run, updates, **settings, resume=True, should_stop=stops.__next__)
    assert small.train(run, updates, **settings, resume=True).is_complete


@pytest.mark.parametrize("algo", PHASIC)
def test_resumed_run_ends_with_the_same_state(algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path):
    settings = {"algo": algo, **PHASIC[algo]}
    small.train(tmp_path / "whole", 7, **settings)
    train_in_sessions(small, tmp_path / "cut", 7, (1, 1, 2, 1), **settings)
    assert small.facts(tmp_path / "cut")["updates"] == 7
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "cut"))


@pytest.mark.parametrize("algo", PHASIC)
def test_weights_do_not_depend_on_other_learners(algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path):
    settings = {"algo": algo, **PHASIC[algo]}
    small.train(tmp_path / "alone", 4, **settings)
    small.train(tmp_path / "two", 4, **settings, members=2, eval_every=small.update_steps)
    assert equal(small.state(tmp_path / "alone"), small.state(tmp_path / "two"))
    assert not equal(small.weights(tmp_path / "alone"), small.weights(tmp_path / "two", "member1"))
    assert len(read_scores(tmp_path / "two" / "scores.csv")) == 4


@on_procgen
@pytest.mark.parametrize("algo", PHASIC)
def test_procgen_run_resumes_exactly(algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path):
    tiny = {"env": "procgen:bigfish", "envs": 2, "rollout_steps": 8, "features": 8, "value_every": 2}
    settings = {**tiny, "steps": 48, "algo": algo, **PHASIC[algo]}
    settings = {name: value for name, value in settings.items() if name != "value_every" or algo != "ppg"}
    small.train(tmp_path / "whole", **settings)
    train_in_sessions(small, tmp_path / "cut", 1, (2,), **settings)
    assert small.facts(tmp_path / "cut")["updates"] == 3
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "cut"))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("algo", PHASIC)
def test_policy_and_value_network_use_fast_encoders_on_a_gpu(algo: str, small: Any):
    images = {"options": {"max_cells": 20}, "encoder": "impala", "algo": algo, **PHASIC[algo]}
    learner = small_learner(small, resources=dataclasses.replace(CPU, device=torch.device("cuda")), **images)
    networks = (learner.algorithm.policy, learner.algorithm.value_network)  # type: ignore[attr-defined]
    assert all(network.encode != network.encoder.forward for network in networks)
    for _ in range(4):
        list(learner.iterate())
    assert all(parameter.isfinite().all() for network in networks for parameter in network.parameters())
    learner.close()


def test_ppg_checkpoint_holds_no_observations(small: Any, tmp_path: Path):
    small.train(tmp_path, 5, algo="ppg", policy_phases=32)
    state, spec = small.state(tmp_path), RunFolder(tmp_path).read_config()[1]
    assert state["history.action"].shape == (5, 16, 8)
    assert all(tuple(tensor.shape[-3:]) != tuple(spec.obs_shape) for tensor in state.values())


def test_resumed_ppg_run_recomputes_its_observation_history(small: Any, tmp_path: Path):
    learners = [small_learner(small, algo="ppg", policy_phases=9) for _ in range(2)]
    for _ in range(2):
        list(learners[0].iterate())
    save_learner(learners[0], tmp_path)
    checkpoint = latest_checkpoint(tmp_path)
    assert checkpoint is not None
    resume_learner(learners[1], checkpoint)
    for learner in learners:
        list(learner.iterate())
    one, other = (learner.algorithm.history for learner in learners)  # type: ignore[attr-defined]
    assert one.count == other.count == 3 and torch.equal(one.obs[:3], other.obs[:3]) and one.obs.any()


@pytest.mark.parametrize("algo", PHASIC)
def test_infinite_value_weights_raise_diverged(algo: str, small: Any, tmp_path: Path):
    learner = small_learner(small, algo=algo)
    learner.algorithm.value_network.value_head.weight.data.fill_(torch.inf)  # type: ignore[attr-defined]
    with pytest.raises(Diverged, match=r"member0 diverged at 128 steps: its .*loss is"):
        list(learner.iterate())


def test_saved_policy_has_the_same_network_as_ppo(small: Any, tmp_path: Path):
    ppo = small.train(tmp_path / "ppo", 1)
    names = set(load_policy(ppo.folder, "member0")[0].state_dict())
    for algo in PHASIC:
        run = small.train(tmp_path / algo, 2, algo=algo)
        policy, _ = load_policy(run.folder, "member0")
        assert set(policy.state_dict()) == names  # so it works wherever a PPO policy does
        obs = expgen.make_env("minimaze", levels=20, num_envs=3).observe()
        assert expgen.load_agent(tmp_path / algo).act(obs.obs, obs.first).shape == (3,)


@pytest.mark.parametrize("algo", ["expgen-idaac", "expgen-ppg"])
def test_policies_of_any_algorithm_can_be_members(algo: str, small: Any, equal: Callable[..., bool], tmp_path: Path):
    """Trained as one population, or in separate runs combined by an agent.json."""
    part = {"features": 16, "minibatches": 2, "epochs": 1, "rollout_steps": 16, "steps": 2 * small.update_steps}
    explorer = {f"explorer_{name}": value for name, value in part.items()}
    member = algo.removeprefix("expgen-")
    small.train(tmp_path / "members", 2, algo=member, members=2)
    small.train(tmp_path / "explorer", 2, algo="maxent")
    small.train(tmp_path / "whole", 2, algo=algo, members=2, eval_every=10**6, **explorer)
    for mine, theirs in (("member1", "members"), ("explorer", "explorer")):
        name = "member0" if mine == "explorer" else mine
        assert equal(small.weights(tmp_path / "whole", mine), small.weights(tmp_path / theirs, name))
    rows = read_scores(tmp_path / "whole" / "scores.csv")
    assert {row.algorithm for row in rows} >= {member, algo}
    paths = [{"path": f"members/checkpoints/member{index}"} for index in range(2)]
    composed = {"members": paths, "explorer": {"path": "explorer/checkpoints/member0"}}
    (tmp_path / "composed.json").write_text(json.dumps(composed))
    obs = expgen.make_env("minimaze", levels=20, num_envs=4).observe()
    agents = [expgen.load_agent(tmp_path / name) for name in ("whole", "composed.json")]
    assert all(isinstance(agent, ConsensusAgent) for agent in agents)
    one, other = (agent.act(obs.obs, obs.first) for agent in agents)
    assert np.array_equal(one, other)


# ten levels of at most 3 × 3 cells, with a time limit that random actions rarely meet
LESSON = {
    "levels": "10", "envs": 16, "rollout_steps": 32, "minibatches": 4, "features": 64, "learning_rate": 3e-3,
    "gamma": 0.95, "options": {"max_cells": 3, "time_limit": 14, "texture": 0, "num_themes": 1}, "eval_every": 0,
}  # fmt: skip
LESSONS: dict[str, dict[str, Any]] = {
    "daac": {"steps": 40 * 512, "value_epochs": 2},
    "idaac": {"steps": 40 * 512, "value_epochs": 2},
    "ppg": {"steps": 40 * 512, "policy_phases": 8, "aux_epochs": 2, "aux_columns": 16, "aux_learning_rate": 3e-3},
}


def check_has_learnt(run: Path) -> None:
    """Check that the agent of `run` solves more of the mazes of LESSON than random actions do."""
    solved = []
    for agent in (expgen.load_agent(run), UniformAgent(5)):
        env = expgen.make_env("minimaze", levels=10, num_envs=16, seed=1, **LESSON["options"])
        solved.append(expgen.evaluate(agent, env, episodes=300).solved_rate)
    assert solved[0] > solved[1] + 0.3, solved


@pytest.mark.parametrize("algo", PHASIC)
def test_phasic_algorithms_learn_small_mazes(algo: str, tmp_path: Path):
    expgen.train(run=tmp_path, algo=algo, preset="laptop", device="cpu", **{**LESSON, **LESSONS[algo]})
    check_has_learnt(tmp_path)


def test_idaac_with_an_augmentation_learns_small_mazes_and_its_rows_name_it(tmp_path: Path):
    settings = {**LESSON, **LESSONS["idaac"], "augmentation": "crop", "eval_every": 10**6, "eval_episodes": 8}
    expgen.train(run=tmp_path, algo="idaac", preset="laptop", device="cpu", **settings)
    check_has_learnt(tmp_path)
    rows, last = read_scores(tmp_path / "scores.csv"), MetricsFile(tmp_path / "metrics.csv").rows()[-1]
    assert [row.settings for row in rows] == ["augmentation=crop"] * 2 and float(last["augmentation_kl"]) > 0
