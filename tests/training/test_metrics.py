"""metrics.csv: rows, columns, dropped and damaged rows; TensorBoard events of the same rows."""

import csv
import math
import resource
from pathlib import Path

import pytest

from expgen.errors import InputError
from expgen.training.loggers import TensorBoardEvents
from expgen.training.metrics import TAIL_BYTES, MetricsFile


def table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.csv"


def test_append_adds_rows_and_columns(path: Path) -> None:
    metrics = MetricsFile(path)
    metrics.append("member0", {"env_steps": 128, "seconds": 0.25, "loss": 1.23456789})
    metrics.append("member1", {"env_steps": 128, "seconds": 0.5, "loss": 2, "test_return": -1e-9})
    assert path.read_text().splitlines() == [
        "learner,env_steps,seconds,loss,test_return",
        "member0,128,0.25,1.23457,",
        "member1,128,0.5,2,-1e-09",
    ]


def test_later_process_continues_with_the_columns_of_the_first(path: Path) -> None:
    MetricsFile(path).append("member0", {"env_steps": 1, "seconds": 1, "loss": 1, "entropy": 2})
    MetricsFile(path).append("member0", {"env_steps": 2, "seconds": 1, "entropy": 4, "loss": 3})
    assert [(row["loss"], row["entropy"]) for row in table(path)] == [("1", "2"), ("3", "4")]


def test_append_writes_nan_and_infinity(path: Path) -> None:
    MetricsFile(path).append("member0", {"env_steps": 1, "seconds": math.inf, "loss": math.nan})
    assert table(path) == [{"learner": "member0", "env_steps": "1", "seconds": "inf", "loss": "nan"}]


def test_drop_rows_after_drops_only_later_rows_of_the_learner(path: Path) -> None:
    metrics = MetricsFile(path)
    for env_steps in (128, 256, 1024):
        for learner in ("member0", "member1"):
            metrics.append(learner, {"env_steps": env_steps, "seconds": 1})
    MetricsFile(path).drop_rows_after("member0", 256)
    assert [(row["learner"], row["env_steps"]) for row in table(path)] == [
        *(("member0", "128"), ("member1", "128"), ("member0", "256"), ("member1", "256"), ("member1", "1024")),
    ]


def test_late_scores_are_added_to_the_row_of_their_step(path: Path) -> None:
    metrics = MetricsFile(path)
    for env_steps in (128, 256, 384):
        for learner in ("member0", "member1"):
            metrics.append(learner, {"env_steps": env_steps, "seconds": 1})
    assert metrics.complete_row("member1", 256, {"test_return": 2.5})
    assert not metrics.complete_row("member1", 200, {"test_return": 9})
    metrics.append("member0", {"env_steps": 512, "seconds": 2, "test_return": 3})
    scored = {(row["learner"], row["env_steps"]): row["test_return"] for row in table(path) if row["test_return"]}
    assert scored == {("member1", "256"): "2.5", ("member0", "512"): "3"} and len(table(path)) == 7
    assert MetricsFile(path).latest()["member1"]["env_steps"] == 384


@pytest.mark.parametrize("torn", ["member0,256,0.5,2", "member0,2", "member0", "member0,256,0.5,2,9"])
def test_incomplete_last_line_is_dropped(path: Path, torn: str) -> None:
    MetricsFile(path).append("member0", {"env_steps": 128, "seconds": 0.25, "loss": 1, "entropy": 9})
    with open(path, "a") as file:
        file.write(torn)
    metrics = MetricsFile(path)
    metrics.drop_rows_after("member0", 128)
    metrics.append("member0", {"env_steps": 256, "seconds": 0.5, "loss": 3, "entropy": 8})
    assert [row["env_steps"] for row in table(path)] == ["128", "256"]
    assert [row["loss"] for row in table(path)] == ["1", "3"]


@pytest.mark.parametrize("steps", ["1" * 16, "1" * 400, "1" * 5000, "٣", "-1", "1.5", ""])
def test_rows_with_invalid_steps_are_skipped(path: Path, steps: str) -> None:
    metrics = MetricsFile(path)
    metrics.append("a", {"env_steps": 1, "seconds": 0.5})
    with open(path, "a") as file:
        file.write(f"a,{steps},0.5\n")
    assert [row["env_steps"] for row in metrics.rows()] == ["1"] and metrics.latest()["a"]["env_steps"] == 1
    metrics.drop_rows_after("a", 0)
    assert metrics.rows() == []


def test_drop_rows_after_creates_no_file(path: Path) -> None:
    MetricsFile(path).drop_rows_after("member0", 0)
    assert not path.exists()


def test_append_to_a_full_disk_raises_input_error(path: Path) -> None:
    metrics = MetricsFile(path)
    metrics.append("member0", {"env_steps": 128, "seconds": 0.25})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        with pytest.raises(InputError, match=f"cannot write {path}: File too large"):
            metrics.append("member0", {"env_steps": 256, "seconds": 0.5})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [row["env_steps"] for row in table(path)] == ["128"]


def test_tensorboard_drops_events_past_the_resumed_checkpoint(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for process, steps in enumerate([(128, 256, 384), (384, 512)]):  # killed past its checkpoint at 256
        events = TensorBoardEvents(tmp_path)
        events.on_learner("member0", 256 * process)
        for env_steps in steps:
            events.on_update("member0", {"env_steps": env_steps, "loss": process + 0.5, "entropy": 1.0})
        events.on_end("done")
    events.on_update("member1", {"env_steps": 1, "loss": 1.0})  # never started, so it has no file
    found = reader.EventAccumulator(str(tmp_path / "member0"))
    found.Reload()
    assert sorted(found.Tags()["scalars"]) == ["entropy", "loss"]
    assert [(event.step, event.value) for event in found.Scalars("loss")] == [
        *((128, 0.5), (256, 0.5), (384, 1.5), (512, 1.5)),
    ]


def test_tensorboard_folder_that_is_a_file_raises_input_error(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "tensorboard").write_text("mine")
    with pytest.raises(InputError, match=r"cannot write .*tensorboard.* accepted: a writable folder"):
        TensorBoardEvents(tmp_path / "tensorboard").on_learner("member0", 0)


def test_latest_skips_a_partial_line_at_the_start_of_the_tail(path: Path) -> None:
    """The tail of a long file may start at any position within a line."""
    lines = "learner,env_steps,seconds\n" + "".join(
        f"member{index % 2},128,0.25\n" for index in range(TAIL_BYTES // 10)
    )
    for shift in range(20):
        path.write_text(f"{lines}member0,256,0.25{'0' * shift}\n")
        latest = MetricsFile(path).latest()
        assert {name: row["env_steps"] for name, row in latest.items()} == {"member0": 256, "member1": 128}
