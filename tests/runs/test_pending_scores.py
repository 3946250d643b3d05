"""Scores that an earlier session left pending."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expgen.evaluation.scores import append_scores, read_scores
from expgen.runs.folder import RunFolder
from expgen.runs.writer import files_to_score
from expgen.training.checkpoint import checkpoint_file, write_checkpoint
from tests.runs.rows import metrics


def test_resume_scores_pending_weights_and_drops_obsolete_ones(small: Any, tmp_path: Path) -> None:
    """As if the run was killed after writing the row of the last step, before its scores, while the learner went on."""
    small.train(tmp_path, 2, eval_every=small.update_steps)
    folder, rows, scores = RunFolder(tmp_path), metrics(tmp_path), read_scores(tmp_path / "scores.csv")
    with open(folder.metrics_file, newline="") as file:
        table = list(csv.DictReader(file))
    table[-1] |= dict.fromkeys((name for name in table[-1] if name.startswith(("train_", "test_"))), "")
    with open(folder.metrics_file, "w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    folder.scores_file.unlink()
    assert metrics(tmp_path) != rows
    for updates in (2, 3):
        weights = checkpoint_file(folder.weights_to_score_of("member0"), updates * small.update_steps)
        write_checkpoint(weights, small.weights(tmp_path), {"env_steps": updates * small.update_steps})
    assert [steps for steps, _ in files_to_score(folder, "member0")] == [256, 384]
    assert small.train(tmp_path, 2, eval_every=small.update_steps, resume=True).is_complete
    assert metrics(tmp_path) == rows and read_scores(tmp_path / "scores.csv") == scores
    assert not (tmp_path / "scoring").exists()


@pytest.mark.parametrize("changes", [{"episodes": 3}, {"levels": "20:5"}], ids=str)
def test_smaller_evaluation_of_pending_weights_does_not_count(changes: Any, small: Any, tmp_path: Path) -> None:
    """As if someone evaluated the last checkpoint of a killed run before it was resumed."""
    small.train(tmp_path, 1, eval_every=small.update_steps)
    folder, rows = RunFolder(tmp_path), read_scores(tmp_path / "scores.csv")
    folder.scores_file.unlink()
    append_scores(folder.scores_file, [replace(row, **changes) for row in rows])
    weights = checkpoint_file(folder.weights_to_score_of("member0"), small.update_steps)
    write_checkpoint(weights, small.weights(tmp_path), {"env_steps": small.update_steps})
    small.train(tmp_path, 1, eval_every=small.update_steps, resume=True)
    assert read_scores(folder.scores_file)[len(rows) :] == rows
