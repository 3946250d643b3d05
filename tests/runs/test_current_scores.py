"""Which rows of scores.csv are those of the current checkpoints."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expgen.evaluation.scores import Score, append_scores, read_scores
from expgen.runs.agent_files import read_agent, write_agent
from expgen.runs.current_scores import current_scores
from expgen.runs.folder import RunFolder
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.scoring import save_scores

ENSEMBLES = ["expgen members=2", "expgen fallback=random members=2"]


def names(run: Path) -> list[str]:
    return list(current_scores(RunFolder(run)).scores)


def evaluate(run: Path, **asked: Any) -> None:
    """Append rows as `expgen evaluate` does."""
    save_scores(run / "scores.csv", list(score_all(read_agent(run), EvaluationRequest(episodes=2, **asked))))


def append(run: Path, split: str = "test", **changes: Any) -> Score:
    """Append the run's row of one split with other values."""
    row = next(row for row in read_scores(run / "scores.csv") if row.split == split)
    changed = replace(row, **changes)
    append_scores(run / "scores.csv", [changed])
    return changed


@pytest.fixture
def single(small: Any, tmp_path: Path) -> Path:
    small.train(tmp_path, 1, eval_every=10**9)
    return tmp_path


@pytest.fixture
def population(small: Any, tmp_path: Path) -> Path:
    small.train(tmp_path, 1, algo="expgen", members=2, eval_every=10**9, **small.explorer)
    return tmp_path


def test_largest_evaluation_is_taken_and_the_last_of_equal_ones(single: Path) -> None:
    rows = {row.split: row for row in read_scores(single / "scores.csv")}
    append(single, episodes=3, mean_return=1.25)
    assert current_scores(RunFolder(single)).scores == {"member0": rows}
    last = append(single, episodes=4, mean_return=1.25)
    assert current_scores(RunFolder(single)).scores == {"member0": {**rows, "test": last}}
    larger = append(single, split="train", episodes=500, mean_return=1.25)
    append(single, split="train", mean_return=2.5)
    assert current_scores(RunFolder(single)).scores == {"member0": {"train": larger, "test": last}}


def test_evaluation_on_all_levels_is_preferred_to_a_larger_one_on_some(single: Path) -> None:
    rows = {row.split: row for row in read_scores(single / "scores.csv")}
    append(single, levels="500:10", episodes=500)
    append(single, split="train", levels="0:5", episodes=500)
    assert current_scores(RunFolder(single)).scores == {"member0": rows}


def test_rows_of_older_weights_are_left_out(small: Any, population: Path) -> None:
    evaluate(population, consensus={"ensemble_size": 1})
    evaluate(population, consensus={"vote": "mean"})
    learners = ["member0", "member1", "explorer"]
    more = ["expgen ensemble_size=1", "expgen vote=mean members=2"]
    assert names(population) == [*learners, *ENSEMBLES, *more]
    steps = 2 * small.update_steps
    settings = {"algo": "expgen", "members": 2, "eval_every": 10**9, **small.explorer, "resume": True}
    small.train(population, 1, **{**settings, "explorer_steps": steps})
    of_members = ["expgen fallback=random members=2", "expgen vote=mean members=2"]  # they have not trained further
    assert names(population) == ["member0", "member1", *of_members, "explorer", "expgen members=2"]
    small.train(population, 1, **{**settings, "explorer_steps": steps, "members": 3})
    grown = ["expgen members=3", "expgen fallback=random members=3"]
    assert names(population) == ["member0", "member1", "explorer", "member2", *grown]


def test_rows_of_an_untuned_and_a_tuned_vote_are_not_mixed(population: Path) -> None:
    """Both are the same variant: rows with the newest settings count, if there are fewer or smaller ones too."""
    tuned = append(population, agent="expgen", settings="members=2 tuned=min_agree:1", env_steps=3 * 128, episodes=2)
    scores = current_scores(RunFolder(population)).scores
    assert scores["expgen members=2 tuned=min_agree:1"] == {"test": tuned} and "expgen members=2" not in scores


def test_rows_of_other_agents_count_if_their_steps_are_those_of_all_policies(population: Path) -> None:
    mine = append(population, agent="mine", env_steps=3 * 128)
    append(population, agent="older", env_steps=2 * 128)
    old = append(population, agent="expgen min_agree=1 members=2", env_steps=3 * 128)  # of a file without settings
    for damage in ("vote=no", "ensemble_size=x", "ensemble_size=-1", f"ensemble_size={'9' * 5000}", "=", "vote"):
        append(population, agent="expgen", settings=damage, env_steps=1)
    scores = current_scores(RunFolder(population)).scores
    assert list(scores)[-2:] == ["mine", "expgen min_agree=1 members=2"]
    assert (scores["mine"], scores["expgen min_agree=1 members=2"]) == ({"test": mine}, {"test": old})


def test_exploration_is_that_of_the_current_explorer(small: Any, population: Path) -> None:
    def steps() -> dict[str, list[int]]:
        exploration = current_scores(RunFolder(population)).exploration
        return {name: sorted(row.env_steps for row in rows.values()) for name, rows in exploration.items()}

    assert steps() == {"explorer": [128, 128]}
    settings = {"algo": "expgen", "members": 2, "eval_every": 10**9, **small.explorer, "resume": True}
    small.train(population, 1, **{**settings, "explorer_steps": 256})
    assert steps() == {"explorer": [256, 256]}


def test_run_without_a_checkpoint_has_no_current_scores(single: Path) -> None:
    for file in RunFolder(single).checkpoints_of("member0").iterdir():
        file.unlink()
    assert names(single) == []


def test_learner_without_a_row_at_its_temperature_is_unscored(small: Any, population: Path) -> None:
    def unscored() -> list[str]:
        return current_scores(RunFolder(population)).unscored

    assert unscored() == []
    write_agent(replace(read_agent(population), temperature=0.5, explorer_temperature=1.0))
    assert unscored() == ["member0", "member1"]
    evaluate(population, learner="member1")
    assert unscored() == ["member0"]
    (population / "scores.csv").unlink()
    assert unscored() == ["member0", "member1", "explorer"]
