"""Every figure of a population once, and only what is missing on a second call."""

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.evaluation.scores import Score, read_scores
from expgen.reproduce.measure import NEXT_LEVELS, figures_of, measure, measured_steps
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import make_config

STEPS = defaultdict(lambda: 25)


def test_ten_members_are_measured_as_the_paper_measured_them():
    figures = figures_of(make_config("procgen:maze", "expgen", members=10), STEPS, episodes=2000)
    assert len({figure.agent for figure in figures}) == 10 + 1 + 10 + 10 + 9 + 9 + 3
    assert all(figure.request.episodes == 2000 for figure in figures)
    where = Counter((figure.request.split, figure.request.levels) for figure in figures)
    assert where == {("train", None): 21, ("test", None): 21 + 31, ("test", NEXT_LEVELS): 21}
    quorums = [figure.request.consensus.get("min_agree") for figure in figures]
    assert [quorum for quorum in quorums if quorum] == list(range(2, 11))


def test_a_row_of_other_training_is_another_figure():
    config = make_config("procgen:maze", "expgen", members=4)
    figure = next(f for f in figures_of(config, STEPS) if f.agent == "expgen leader=1" and f.request.split == "test")
    row = Score("expgen", "maze", config.env, 0, "test", "all", 125, 500, 8.0, 4.0, 0.8, 7.5, 8.5, figure.agent, "c")
    for aside in ("", " members=4", " tuned=min_agree:3+alpha:0.5", " members=4 tuned=min_agree:3+alpha:0.5"):
        assert figure.is_in(replace(row, agent=f"expgen leader=1{aside}")), aside
    for change in ({"env": "procgen:heist"}, {"env_steps": 124}, {"split": "train"}, {"levels": NEXT_LEVELS},
                   {"episodes": 499}, {"agent": "expgen leader=2"}):  # fmt: skip
        assert not figure.is_in(replace(row, **change)), change


def test_leaders_draw_levels_of_their_own():
    figures = figures_of(make_config("procgen:maze", "expgen", members=4), STEPS)
    seeds = {f.request.seed for f in figures if f.agent.startswith("expgen leader=") and f.request.split == "train"}
    assert seeds == {0, 1, 2, 3}


def test_a_run_without_an_ensemble_is_refused():
    with pytest.raises(InputError, match="a population with an explorer"):
        figures_of(make_config("minimaze", "ppo"), STEPS)


def test_rows_are_appended_once(small: Any, tmp_path: Path):
    small.train(tmp_path / "run", 2, algo="expgen", members=2)
    folder, scores = RunFolder(tmp_path / "run"), tmp_path / "scores.csv"
    figures = figures_of(folder.read_config()[0], measured_steps(folder), episodes=4, envs=4)
    wanted = [f for f in figures if f.agent in ("member1", "explorer", "expgen leader=1", "expgen min_agree=2")]
    first = list(measure(folder, wanted[:4], scores, 1))
    again = list(measure(folder, wanted, scores, 2))
    assert len(first) == 4 and len(again) == len(wanted) - 4
    rows = read_scores(scores)
    assert all(any(figure.is_in(row) for row in rows) for figure in wanted)
    found = Counter((row.agent, row.split, row.levels) for row in rows)
    assert set(found.values()) == {1}
    assert {row.agent for row in rows if "measure" in row.agent} >= {"explorer measure=intrinsic"}
    assert {figure.env_steps for figure in wanted} == {row.env_steps for row in rows}
    ensembles = [row.agent for row in rows if row.algorithm == "expgen"]
    assert ensembles and all(agent.endswith(" members=2") for agent in ensembles)
    text = scores.read_text()
    assert not list(measure(folder, wanted, scores, 2)) and scores.read_text() == text
