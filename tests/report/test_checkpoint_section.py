"""Scores of the last checkpoint and of the last five, from evaluations only."""

from pathlib import Path

import numpy as np

from expgen.report.curve_sections import checkpoint_section
from expgen.report.curves import Curve, read_curves

HEADER = "learner,env_steps,episode_return,train_return,test_return,average_test_return\n"


def curves_of(folder: Path, *lines: str) -> list[Curve]:
    file = folder / "metrics.csv"
    file.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    return list(read_curves(file, "maze", {}, "ppo"))


def texts(curves: list[Curve]) -> list[list[str]]:
    section = checkpoint_section(curves)
    assert section is not None
    return [[cell.text for cell in row] for row in section.tables[0].rows]


def test_last_five_checkpoints_match_hand_computation_without_training_episodes(tmp_path: Path):
    """Scored 1, 2, … 6 at every second row; training episodes pay 99. The last five are 2 to 6, whose mean is 4."""
    lines = [f"member0,{step}000,99,,{step // 2 - 50 if step % 2 == 0 else ''}," for step in range(101, 113)]
    assert texts(curves_of(tmp_path, *lines)) == [
        ["maze", "PPO", "test", "live", "1", "6.00", "4.00", "2.00 to 6.00", "104k to 112k"]
    ]


def test_checkpoints_average_learners_with_at_least_five_scores(tmp_path: Path):
    """Member 0 scores 5 all along, member 1 ends 0, 0, 0, 0, 10: last (5 + 10) / 2, last five (5 + 2) / 2."""
    lines = [f"member0,{step},,,5," for step in range(101, 106)]
    lines += [f"member1,{step},,,{10 * (step == 105)}," for step in range(101, 106)]
    lines += [f"member2,{step},,,7," for step in range(101, 105)]
    ((*_, learners, last, mean, spread, _),) = texts(curves_of(tmp_path, *lines))
    assert (learners, last, mean, spread) == ("2", "7.50", "3.50", "0.00 to 10.00")


def test_checkpoint_rows_separate_splits_and_averaged_weights(tmp_path: Path):
    rows = texts(curves_of(tmp_path, *(f"member0,{step},1,9,5,6" for step in range(101, 106))))
    assert [row[2:4] for row in rows] == [["train", "live"], ["test", "live"], ["test", "average"]]
    assert [row[6] for row in rows] == ["9.00", "5.00", "6.00"]


def test_checkpoints_before_the_last_quarter_are_omitted(tmp_path: Path):
    assert checkpoint_section(curves_of(tmp_path, *(f"member0,{step},,,5," for step in (5, 10, 15, 20, 25)))).is_empty
    assert len(texts(curves_of(tmp_path, *(f"member0,{step},,,5," for step in (75, 80, 85, 90, 100))))) == 1


def test_checkpoint_section_is_empty_without_scored_checkpoints():
    assert checkpoint_section([Curve("ppo", "maze", "member0", np.array([[1.0, 2.0]]), {})]).is_empty
