"""Every figure of a population once, and only what is missing on a second call."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.experiments.run import make_config
from expgen.experiments.run_folder import RunFolder
from expgen.reproduce.measure import NEXT_LEVELS, figures_of, measure


def test_ten_members_are_measured_as_the_paper_measured_them():
    figures = figures_of(make_config("procgen:maze", "expgen", members=10), episodes=2000)
    assert len({figure.agent for figure in figures}) == 10 + 1 + 10 + 10 + 9 + 9 + 3
    assert all(figure.request.episodes == 2000 for figure in figures)
    where = Counter((figure.request.split, figure.request.levels) for figure in figures)
    assert where == {("train", None): 21, ("test", None): 21 + 31, ("test", NEXT_LEVELS): 21}
    quorums = [figure.request.consensus.get("min_agree") for figure in figures]
    assert [quorum for quorum in quorums if quorum] == list(range(2, 11))


def test_leaders_draw_levels_of_their_own():
    figures = figures_of(make_config("procgen:maze", "expgen", members=4))
    seeds = {f.request.seed for f in figures if f.agent.startswith("expgen leader=") and f.request.split == "train"}
    assert seeds == {0, 1, 2, 3}


def test_a_run_without_an_ensemble_is_refused():
    with pytest.raises(InputError, match="a population with an explorer"):
        figures_of(make_config("minimaze", "ppo"))


def test_rows_are_appended_once(small: Any, tmp_path: Path):
    small.train(tmp_path / "run", 2, algo="expgen", members=2)
    folder, scores = RunFolder(tmp_path / "run"), tmp_path / "scores.csv"
    figures = figures_of(folder.read_config()[0], episodes=4, envs=4)
    wanted = [f for f in figures if f.agent in ("member1", "explorer", "expgen leader=1", "expgen min_agree=2")]
    first = list(measure(folder, wanted[:4], scores, 1))
    again = list(measure(folder, wanted, scores, 2))
    assert len(first) == 4 and len(again) == len(wanted) - 4
    rows = read_scores(scores)
    assert all(any(figure.is_in(row) for row in rows) for figure in wanted)
    found = Counter((row.agent, row.split, row.levels) for row in rows)
    assert set(found.values()) == {1}
    assert {row.agent for row in rows if "measure" in row.agent} >= {"explorer measure=intrinsic"}
    text = scores.read_text()
    assert not list(measure(folder, wanted, scores, 2)) and scores.read_text() == text
