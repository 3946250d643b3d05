"""curve_rows: the scores in metrics.csv as score rows for reports."""

import math
from pathlib import Path
from typing import Any

import pytest

from expgen.evaluation.scores import read_scores
from expgen.runs.folder import RunFolder
from expgen.runs.result import curve_rows


@pytest.fixture
def folder(small: Any, tmp_path: Path) -> RunFolder:
    """Four updates of two members, scored at every second one."""
    settings = {"members": 2, "seed": 5, "member_levels": "bootstrap", "eval_every": 2 * small.update_steps}
    small.train(tmp_path / "run", 4, **settings)
    return RunFolder(tmp_path / "run")


def test_curve_rows_have_a_row_per_learner_scored_step_and_split(folder: RunFolder, small: Any) -> None:
    lines = folder.metrics_file.read_text().splitlines()
    header, rows = lines[0].split(","), curve_rows(folder, "c0ffee")
    assert sorted((row.agent, row.seed, row.env_steps, row.split) for _, row in rows) == sorted(
        (f"member{index}", 5 + index, updates * small.update_steps, split)
        for index in (0, 1)
        for updates in (2, 4)
        for split in ("train", "test")
    )
    for line, row in rows:
        metrics = dict(zip(header, lines[line - 1].split(","), strict=True))  # lines count from 1
        assert (metrics["learner"], int(metrics["env_steps"])) == (row.agent, row.env_steps)
        assert row.mean_return == float(metrics[f"{row.split}_return"])
        assert row.solved_rate == float(metrics[f"{row.split}_solved"])
        assert (row.episodes, row.commit, row.algorithm, row.game) == (4, "c0ffee", "ppo", "minimaze")
        assert math.isnan(row.ci_low) and math.isnan(row.ci_high) and math.isnan(row.std_return)


def test_curve_rows_have_the_training_levels_of_each_member(folder: RunFolder) -> None:
    levels = {(row.agent, row.split): row.levels for _, row in curve_rows(folder)}
    assert len({levels["member0", "train"], levels["member1", "train"], "0:20"}) == 3
    assert levels["member0", "test"] == levels["member1", "test"]


def test_curve_rows_skip_unknown_learners_and_unscored_rows(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path / "run", 2)  # never scored
    folder = RunFolder(tmp_path / "run")
    assert curve_rows(folder) == []
    folder.metrics_file.write_text("learner,env_steps,seconds,test_return\nmember7,128,1,3\nmember0,128,1,4\n")
    ((line, row),) = curve_rows(folder)
    assert (line, row.agent, row.mean_return) == (3, "member0", 4) and math.isnan(row.solved_rate)
    folder.metrics_file.unlink()
    assert curve_rows(folder) == []


def test_curve_rows_name_the_settings_of_the_training_like_score_rows(small: Any, tmp_path: Path) -> None:
    settings = {"mirror": True, "average": 0.9, "eval_every": small.update_steps}
    small.train(tmp_path, 1, algo="maxent", end_value=1.0, **settings)
    folder = RunFolder(tmp_path)
    played = {(row.settings, row.split) for row in read_scores(folder.scores_file)}
    assert {(row.settings, row.split) for _, row in curve_rows(folder)} == played
    assert ("weights=average end_value=1 mirror=True", "test") in played and len(played) == 4
