"""Final scores that a resumed run lacks: it plays in another way now, or the rows were deleted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expgen.evaluation.scores import Score, agent_name, append_scores, read_scores
from expgen.runs import scoring
from expgen.runs.agent_files import read_agent
from expgen.runs.request import EvaluationRequest, score_all
from tests.runs.rows import metrics


def population(small: Any, run: Path, **changes: Any) -> list[Score]:
    """Train or resume an ensemble of two members, for one update; return its score rows."""
    settings = {"algo": "expgen", "members": 2, "eval_every": 10**9, **small.explorer}
    assert small.train(run, 1, **{**settings, **changes}).is_complete
    return list(read_scores(run / "scores.csv"))


def names(rows: list[Score]) -> list[str]:
    return sorted({agent_name(row) for row in rows})


def test_finished_population_is_scored_at_a_new_temperature(small: Any, tmp_path: Path) -> None:
    before, curves = population(small, tmp_path), metrics(tmp_path)
    rows = population(small, tmp_path, resume=True, temperature=0.5)
    new = rows[len(before) :]
    assert rows[: len(before)] == before and len(new) == len(before) == 2 * 5
    ensembles = ["expgen temperature=0.5 fallback=random members=2", "expgen temperature=0.5 members=2"]
    assert names(new) == [*ensembles, *(f"{name} temperature=0.5" for name in ("explorer", "member0", "member1"))]
    assert metrics(tmp_path) == curves  # a curve is at the temperature of its time
    (asked,) = score_all(read_agent(tmp_path), EvaluationRequest("test", episodes=4))
    assert asked.score in new


def test_new_temperature_of_the_explorer_scores_who_it_concerns(small: Any, tmp_path: Path) -> None:
    before = population(small, tmp_path)
    rows = population(small, tmp_path, resume=True, explorer_temperature=0.5)
    assert names(rows[len(before) :]) == ["expgen explorer_temperature=0.5 members=2", "explorer temperature=0.5"]


def test_rows_that_exist_are_not_played_again(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = population(small, tmp_path, average=0.9)
    monkeypatch.setattr(scoring, "play_levels", None)
    assert population(small, tmp_path, average=0.9, resume=True) == rows


def test_new_vote_is_scored_though_its_rows_have_equal_names(small: Any, tmp_path: Path) -> None:
    before = population(small, tmp_path)
    rows = population(small, tmp_path, resume=True, min_agree=2)
    ensembles = ["expgen fallback=random members=2", "expgen members=2"]
    assert names(rows[len(before) :]) == ensembles and len(rows) == len(before) + 4


def test_new_vote_is_scored_though_the_session_that_set_it_was_killed(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = population(small, tmp_path)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(scoring, "play_levels", killed)
        population(small, tmp_path, resume=True, min_agree=2)
    rows = population(small, tmp_path, resume=True)
    ensembles = ["expgen fallback=random members=2", "expgen members=2"]
    assert names(rows[len(before) :]) == ensembles and len(rows) == len(before) + 4
    assert not (tmp_path / "scoring").exists()
    assert population(small, tmp_path, resume=True) == rows


def killed(*arguments: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("hang_seconds", [0, 600])
def test_run_with_hedge_is_scored_with_random_actions_too(small: Any, tmp_path: Path, hang_seconds: int) -> None:
    rows = population(small, tmp_path, hedge=0.1, hang_seconds=hang_seconds)
    assert [name for name in names(rows) if name.startswith("expgen")] == [
        "expgen fallback=random members=2",
        "expgen members=2 hedge=0.1",
    ]


def test_rows_name_the_settings_of_the_vote_in_the_agent_file(small: Any, tmp_path: Path) -> None:
    before = population(small, tmp_path)
    rows = population(small, tmp_path, resume=True, alpha=0.25, agreement="action", fallback="none")
    vote = {"expgen", "members=2", "agreement=action", "alpha=0.25"}
    ensembles = [vote | {f"fallback={fallback}"} for fallback in ("random", "none")]
    assert [set(name.split()) for name in names(rows[len(before) :])] == ensembles


def test_deleted_rows_are_scored_as_before(small: Any, tmp_path: Path) -> None:
    rows = population(small, tmp_path, average=0.9)
    (tmp_path / "scores.csv").unlink()
    assert sorted(map(str, population(small, tmp_path, average=0.9, resume=True))) == sorted(map(str, rows))


@pytest.mark.parametrize(
    "changes", [{"episodes": 3}, {"levels": "0:5"}, {"env_steps": 64}, {"settings": "mirror=True"}], ids=str
)
def test_row_of_another_evaluation_does_not_count(changes: dict[str, Any], small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, eval_every=10**9)
    rows, file = read_scores(tmp_path / "scores.csv"), tmp_path / "scores.csv"
    file.unlink()
    append_scores(file, [replace(row, **changes) for row in rows])
    assert small.train(tmp_path, 1, eval_every=10**9, resume=True).is_complete
    assert read_scores(file)[len(rows) :] == rows


def test_larger_evaluation_of_another_commit_counts(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.train(tmp_path, 1, eval_every=10**9)
    rows, file = read_scores(tmp_path / "scores.csv"), tmp_path / "scores.csv"
    file.unlink()
    append_scores(file, [replace(row, episodes=500, commit="older") for row in rows])
    monkeypatch.setattr(scoring, "play_levels", None)
    assert small.train(tmp_path, 1, eval_every=10**9, resume=True).is_complete


def test_single_learners_of_a_run_without_scores_stay_unscored(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 1, eval_every=0)
    assert small.train(tmp_path, 1, eval_every=0, resume=True, temperature=0.5).is_complete
    assert not (tmp_path / "scores.csv").exists()
    rows = population(small, tmp_path / "population", eval_every=0)
    after = population(small, tmp_path / "population", eval_every=0, resume=True, temperature=0.5)
    assert {row.agent for row in after} == {"expgen"} and len(after) == 2 * len(rows) == 8


def test_scoring_process_plays_the_same(small: Any, tmp_path: Path) -> None:
    runs = tmp_path / "here", tmp_path / "there"
    for run, hang_seconds in zip(runs, (0, 600), strict=True):
        population(small, run)
        population(small, run, resume=True, temperature=0.5, min_agree=2, hang_seconds=hang_seconds)
    here, there = (sorted(map(str, read_scores(run / "scores.csv"))) for run in runs)
    assert here == there and len(here) == 2 * 5 * 2
    assert not (runs[1] / "scoring").exists()
    assert small.newest(runs[1]).exists()  # a pending file is deleted once scored, a checkpoint is not
