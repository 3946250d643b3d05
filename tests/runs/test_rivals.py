"""The algorithms that the paper compares with: each learns minimaze, is loaded, evaluated and reported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import expgen
from expgen.agents.agent import PolicyAgent, UniformAgent
from expgen.agents.ensemble import Ensemble
from expgen.evaluation.scores import read_scores
from expgen.networks.actor_critic import policies_in
from expgen.networks.joint import JointPolicy
from expgen.training.metrics import MetricsFile

MAZES = {"max_cells": 3, "time_limit": 15, "num_themes": 2}
LEARNING = {
    "preset": "smoke", "device": "cpu", "levels": "8", "options": MAZES, "steps": 32 * 1024, "envs": 32,
    "rollout_steps": 32, "epochs": 3, "features": 32, "learning_rate": 3e-3, "gamma": 0.95, "eval_every": 0,
}  # fmt: skip
RIVALS = {"plr": {}, "ucb-drac": {"ucb_try_each": True}, "leep": {"subsets": 2}}


def score(agent: Any) -> float:
    env = expgen.make_env("minimaze", levels=8, num_envs=16, **MAZES)
    return expgen.evaluate(agent, env, episodes=200).mean_return


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the run of an algorithm, trained on the first call."""
    folder = tmp_path_factory.mktemp("runs")

    def run(algo: str) -> Path:
        if not (folder / algo).exists():
            assert expgen.train("minimaze", algo, run=folder / algo, **LEARNING | RIVALS.get(algo, {})).is_complete
        return folder / algo

    return run


@pytest.mark.parametrize("algo", list(RIVALS))
def test_every_rival_algorithm_learns_minimaze(algo: str, runs: Callable[[str], Path]) -> None:
    """Random play has 2.8, PPO 7.5; a LEEP member plays half as much and misses some of the levels."""
    learnt, random = score(expgen.load_agent(runs(algo))), score(UniformAgent(5))
    share = 0.6 if algo == "leep" else 0.85
    assert learnt > random + 2 and learnt > share * score(expgen.load_agent(runs("ppo")))


@pytest.mark.parametrize("algo", list(RIVALS))
def test_evaluate_scores_every_rival_algorithm(
    algo: str, runs: Callable[[str], Path], command: Callable[..., Any]
) -> None:
    run = runs(algo)
    for split in ("train", "test"):
        assert command("evaluate", run, "--split", split, "--episodes", "20").status == 0
    rows = read_scores(run / "scores.csv")
    assert [(row.algorithm, row.agent, row.split) for row in rows] == [(algo, "member0", s) for s in ("train", "test")]


def test_every_rival_algorithm_reports_its_metrics(runs: Callable[[str], Path]) -> None:
    last = {algo: MetricsFile(runs(algo) / "metrics.csv").rows()[-1] for algo in RIVALS}
    assert last["plr"]["levels_seen"] == "8" and float(last["plr"]["level_score"]) > 0
    assert float(last["leep"]["joint_kl"]) > 0
    augmentations = {int(row["augmentation"]) for row in MetricsFile(runs("ucb-drac") / "metrics.csv").rows()}
    assert augmentations == set(range(8))  # the bandit tries them all


def test_leep_plays_the_joint_policy(runs: Callable[[str], Path]) -> None:
    agent = expgen.load_agent(runs("leep"))
    assert isinstance(agent, PolicyAgent) and isinstance(agent.policy, JointPolicy) and not agent.policy.training
    obs = torch.from_numpy(expgen.make_env("minimaze", levels=8, num_envs=5, **MAZES).observe().obs)
    prob = Ensemble(policies_in(agent.policy)).logits(obs).softmax(-1).amax(0)  # [N, A]
    joint = agent.policy(obs[None], torch.ones(1, 5, dtype=torch.bool), torch.zeros(5, 0)).logits[0]
    torch.testing.assert_close(joint.softmax(-1), prob / prob.sum(-1, keepdim=True))
    together = Ensemble([agent.policy, agent.policy]).logits(obs)  # as a member among members
    torch.testing.assert_close(together, torch.stack([joint, joint]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--algo", "leep", "--envs", "6"], r"--envs is 6; accepted: a multiple of --subsets (4)"),
        (["--algo", "leep", "--memory", "gru"], "--memory is gru but joint policies have none; accepted: none"),
        (["--algo", "ucb-drac", "--augmentation", "blur"], "--augmentation is 'blur'; accepted: "),
        (["--algo", "idaac", "--augmentation", "ucb"], "--augmentation is 'ucb'; accepted: none, crop, "),
        (["--algo", "ppo", "--width", "2"], "--width is 2 but the encoder is small; accepted: 1, or impala or impoola"),
        (["--algo", "plr", "--staleness-coef", "2"], "--staleness-coef is 2.0; accepted: 0 to 1"),
    ],
)
def test_invalid_settings_of_rivals_are_refused(
    words: list[str], message: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    assert message in refused("train", *words, "--preset", "smoke", "--device", "cpu", "--run", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_impoola_encoder_works_with_every_algorithm(small: Any, tmp_path: Path) -> None:
    for algo in ("ppo-gru", "plr", "ucb-drac", "leep", "maxent"):
        run = tmp_path / algo
        small.train(run, 1, algo=algo, encoder="impoola", width=2, features=4, rollout_steps=8)
        assert any(name.endswith("stages.2.conv.weight") for name in small.weights(run))
        expgen.load_agent(run)
