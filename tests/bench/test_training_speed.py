"""benchmarks/training_speed.py measures a real training command."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "training_speed.py"))
SMOKE = SCRIPT["Case"]("2 ppo", "minimaze", 2, "--preset smoke --algo ppo --members 2")


def test_training_speed_measures_all_learners_and_stops_the_run(tmp_path: Path) -> None:
    command = SCRIPT["train_command"](SMOKE, tmp_path / "run", "cpu", "1")
    rate, start_seconds = SCRIPT["measure"](command, tmp_path / "run", SMOKE, seconds=3)
    assert rate > 0 and start_seconds > 0
    assert sorted(folder.name for folder in (tmp_path / "run" / "checkpoints").iterdir()) == ["member0", "member1"]


def test_training_speed_reports_a_command_that_fails(tmp_path: Path) -> None:
    command = [*SCRIPT["train_command"](SMOKE, tmp_path / "run", "cpu", "1"), "--seed", "-1"]
    with pytest.raises(SystemExit, match="ended with status 2"):
        SCRIPT["measure"](command, tmp_path / "run", SMOKE, seconds=3)
