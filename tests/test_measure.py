"""scripts/measure evaluates a population once; a second call only adds missing rows."""

import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest

from expgen.agents.description import AgentDescription
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.evaluation.scores import Score, read_scores
from expgen.exploration.rows import read_exploration
from expgen.runs.agent_files import describe_run, read_agent
from expgen.runs.make_config import make_config, make_consensus

SCRIPT = Path(__file__).parents[1] / "scripts" / "measure"
measure = SimpleNamespace(**run_path(str(SCRIPT)))
STEPS = defaultdict(lambda: 25)


def agent_of(env: str, algo: str, **settings: Any) -> AgentDescription:
    config = make_config(env, algo, **settings)
    spec = EnvSpec(env, (64, 64, 3), "uint8", 15)
    return describe_run(Path(), config, spec, make_consensus(config))


def test_measure_evaluates_ten_members_like_the_paper():
    figures = measure.figures_of(agent_of("procgen:maze", "expgen", members=10), STEPS, episodes=2000)
    assert len({(figure.agent, figure.settings) for figure in figures}) == 10 + 1 + 10 + 10 + 9 + 9 + 3
    assert all(figure.request.episodes == 2000 for figure in figures)
    where = Counter((figure.request.split, figure.request.levels) for figure in figures)
    assert where == {("train", None): 21, ("test", None): 21 + 31, ("test", measure.NEXT_LEVELS): 21}
    quorums = [figure.request.consensus.get("min_agree") for figure in figures]
    assert [quorum for quorum in quorums if quorum] == list(range(2, 11))


def test_measure_separates_rows_of_different_training():
    agent = agent_of("procgen:maze", "expgen", members=4)
    figure = next(f for f in measure.figures_of(agent, STEPS) if f.settings == "leader=1" and f.request.split == "test")
    row = Score(
        "expgen", "maze", agent.env, 0, "test", "all", 125, 500, 8.0, 4.0, 0.8, 7.5, 8.5, "expgen", "c", "leader=1"
    )
    for aside in ("", " members=4", " tuned=min_agree:3+alpha:0.5", " members=4 tuned=min_agree:3+alpha:0.5"):
        assert figure.is_in(replace(row, settings=f"leader=1{aside}")), aside
    for change in ({"env": "procgen:heist"}, {"env_steps": 124}, {"split": "train"}, {"levels": measure.NEXT_LEVELS},
                   {"episodes": 499}, {"settings": "leader=2"}):  # fmt: skip
        assert not figure.is_in(replace(row, **change)), change


def test_measure_uses_different_levels_for_each_leader():
    figures = measure.figures_of(agent_of("procgen:maze", "expgen", members=4), STEPS)
    seeds = {f.request.seed for f in figures if f.settings.startswith("leader=") and f.request.split == "train"}
    assert seeds == {0, 1, 2, 3}


def test_measure_rejects_a_run_without_ensemble():
    with pytest.raises(InputError, match="a population with an explorer"):
        measure.figures_of(agent_of("minimaze", "ppo"), STEPS)


def test_measure_appends_each_row_once(small: Any, tmp_path: Path):
    small.train(tmp_path / "run", 2, algo="expgen", members=2)
    scores = tmp_path / "scores.csv"
    words = [SCRIPT, tmp_path / "run", "--scores", scores, "--episodes", 4, "--envs", 4, "--device", "cpu"]

    def run() -> list[str]:
        asked = [sys.executable, *map(str, words), "--workers", "2"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()

    agent = read_agent(tmp_path / "run")
    figures = measure.figures_of(agent, measure.measured_steps(agent), episodes=4, envs=4)
    assert len(run()) == len(figures) == 16
    rows = read_scores(scores)
    assert all(any(figure.is_in(row) for row in rows) for figure in figures)
    found = Counter((row.agent, row.settings, row.split, row.levels) for row in rows)
    assert set(found.values()) == {1}
    explored = [row for _, row in read_exploration(tmp_path / "exploration.csv")]
    assert {(row.agent, row.split) for row in explored} == {("explorer", "train"), ("explorer", "test")}
    assert {figure.env_steps for figure in figures} == {row.env_steps for row in rows}
    ensembles = [row.settings for row in rows if row.algorithm == "expgen"]
    assert ensembles and all(settings.endswith(" members=2") for settings in ensembles)
    lines = scores.read_text().splitlines(keepends=True)
    scores.write_text("".join(lines[:-3]))
    assert len(run()) == 3 and sorted(scores.read_text().splitlines(keepends=True)) == sorted(lines)
