"""Estimated hours of jobs."""

import dataclasses

import pytest

from expgen.algorithms.recipes import RECIPES
from expgen.paper.exhibits import EXHIBITS
from expgen.reproduce.estimate import BESIDE_PPO, Estimator
from expgen.reproduce.job import Job
from expgen.reproduce.jobs import jobs_of
from expgen.reproduce.scale import SCALES

PPO, EXPLORER = 1000.0, 500.0  # steps/s


@pytest.fixture
def estimator() -> Estimator:
    """An Estimator with given rates."""
    made = Estimator("cpu")
    made.rates = {("minimaze", False): PPO, ("minimaze", True): EXPLORER, ("procgen", False): float("nan")}
    return made


def job(algo: str, env: str = "minimaze", **changes) -> Job:
    settings = {"steps": 2048, "envs": 8, "rollout_steps": 64, "members": 2}
    if algo.startswith("expgen"):
        settings |= {"explorer_steps": 1024, "explorer_rollout_steps": 64}
    return Job(algo, env, algo, "smoke", settings, **changes)


@pytest.mark.parametrize(
    ("algo", "seconds"),
    [
        ("ppo", 4096 / PPO),
        ("idaac", 4096 / (PPO * 24715 / 41039)),
        ("daac", 4096 / (PPO * 24715 / 41039)),
        ("leep", 4096 / (PPO * 22811 / 41039)),
        ("ppo-gru", 4096 / EXPLORER),
        ("expgen", 4096 / PPO + 1024 / EXPLORER),
        ("expgen-idaac", 4096 / (PPO * 24715 / 41039) + 1024 / EXPLORER),
    ],
)
def test_estimate_uses_the_rate_of_each_learner(algo: str, seconds: float, estimator: Estimator) -> None:
    effort = estimator.effort([job(algo)])
    assert effort.hours == pytest.approx(seconds / 3600) and effort.refused == ()


def test_estimate_adds_jobs_and_composed_agents_cost_nothing(estimator: Estimator) -> None:
    effort = estimator.effort([job("ppo"), job("leep"), job("expgen", made_of=("ppo",))])
    assert (effort.jobs, effort.steps) == (3, 2 * 4096)
    assert effort.hours == pytest.approx(4096 / PPO / 3600 * (1 + 41039 / 22811))


def test_estimate_of_continued_runs_counts_missing_steps_only(estimator: Estimator) -> None:
    usual = job("ppo")
    longer = dataclasses.replace(usual, name="longer", settings={**usual.settings, "steps": 6144}, continues="ppo")
    assert estimator.effort([usual, longer]).steps == 2 * 6144


def test_estimate_has_no_hours_without_a_rate_and_reports_bad_jobs(estimator: Estimator) -> None:
    effort = estimator.effort([job("ppo"), job("ppo", env="procgen:maze"), job("chess")])
    assert effort.hours is None and effort.steps == 2 * 4096 and effort.jobs == 3
    assert len(effort.refused) == 1 and "chess" in effort.refused[0]


def test_every_algorithm_of_the_paper_s_tables_has_a_rate() -> None:
    used = {job.algo for job in jobs_of(EXHIBITS, SCALES["paper"])}
    members = {RECIPES[algo].member or algo for algo in used}
    own_update = {algo for algo in members if RECIPES[algo].network.memory == "none"}
    assert own_update <= BESIDE_PPO.keys()
    assert BESIDE_PPO["ppo"] == 1 and "maxent" not in BESIDE_PPO
