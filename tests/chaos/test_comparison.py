"""The comparison of chaos runs detects each kind of loss."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.training.checkpoint import latest_checkpoint, write_checkpoint
from tests.chaos.comparison import compare, is_good
from tests.chaos.scene import JOBS


@pytest.fixture(scope="module")
def local(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reproduction with one run and rows of several."""
    folder = tmp_path_factory.mktemp("local")
    small.train(folder / "runs" / JOBS[0], 1)
    (folder / "scores.csv").write_text("columns\na\nb\nc\n")
    return folder


def report_on(local: Path, out: Path, damage: Callable[[Path], object]) -> dict[str, Any]:
    shutil.copytree(local, out)
    damage(out)
    return compare(local, out) | {"processes_left": 0}


def test_identical_copy_passes(local: Path, tmp_path: Path) -> None:
    report = report_on(local, tmp_path / "out", lambda out: None)
    assert is_good(report) and report["score_rows"] == 3 and report["same_order"]
    assert not is_good({**report, "processes_left": 1})


@pytest.mark.parametrize(
    ("rows", "noticed"),
    [
        ("a\nb\n", {"rows_lost_or_changed": 1, "rows_doubled": 0}),
        ("a\nb\nd\n", {"rows_lost_or_changed": 1, "rows_doubled": 0}),
        ("a\nb\nb\nc\n", {"rows_lost_or_changed": 0, "rows_doubled": 1}),
        ("a\nb\nc\nd\n", {"rows_lost_or_changed": 0, "rows_added": 1}),
    ],
)
def test_lost_changed_repeated_or_added_rows_fail(
    rows: str, noticed: dict[str, int], local: Path, tmp_path: Path
) -> None:
    report = report_on(local, tmp_path / "out", lambda out: (out / "scores.csv").write_text(f"columns\n{rows}"))
    assert not is_good(report) and noticed.items() <= report.items()


def test_reordered_rows_are_reported_but_pass(local: Path, tmp_path: Path) -> None:
    report = report_on(local, tmp_path / "out", lambda out: (out / "scores.csv").write_text("columns\nb\na\nc\n"))
    assert is_good(report) and not report["same_order"]


def test_one_changed_bit_of_the_weights_fails(local: Path, tmp_path: Path) -> None:
    def flip(out: Path) -> None:
        folder = out / "runs" / JOBS[0] / "checkpoints" / "member0"
        found = latest_checkpoint(folder)
        assert found is not None
        next(tensor for name, tensor in found.tensors.items() if name.startswith("policy.")).view(-1)[0] += 1e-3
        write_checkpoint(max(folder.glob("*.safetensors")), found.tensors, found.facts)

    report = report_on(local, tmp_path / "out", flip)
    assert not is_good(report) and not report["final_checkpoints_bit_equal"]


def test_left_over_temporary_file_fails(local: Path, tmp_path: Path) -> None:
    assert not is_good(report_on(local, tmp_path / "out", lambda out: (out / "x.json.1.part").touch()))
