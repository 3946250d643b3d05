"""Damaged files and full disks: one line of error, and valid data is kept."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expgen
from tests.children import PATIENCE
from tests.runs.rows import metrics


@pytest.mark.parametrize("damage", ["truncated", "flipped", "foreign", "empty"])
def test_damaged_checkpoint_falls_back_to_the_one_before(
    damage: str, small: Any, equal: Callable[..., bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    small.train(run, 3)
    whole, path = small.state(run), small.newest(run)
    good = path.read_bytes()
    flipped = good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]
    contents = {"truncated": good[: len(good) // 2], "flipped": flipped, "foreign": b"PK\x03\x04 zip", "empty": b""}
    path.write_bytes(contents[damage])
    rows = metrics(run)
    assert small.train(run, 3, resume=True).is_complete
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"expgen: {path} is ") and line.endswith("using the one before it")
    assert equal(whole, small.state(run)) and path.read_bytes() != contents[damage]
    assert metrics(run) == rows


@pytest.mark.parametrize(
    ("damage", "rows_kept", "processes"),
    [
        *(("flipped", 3, 1), ("flipped", 3, 2), ("garbage", 4, 1), ("header", 0, 1), ("zeros", 0, 1), ("binary", 0, 1)),
        *(("folder", 0, 1), ("steps", 4, 1)),
    ],
)
def test_resume_repairs_damaged_metrics(
    damage: str,
    rows_kept: int,
    processes: int,
    small: Any,
    equal: Callable[..., bool],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, whole, members = tmp_path / "run", tmp_path / "whole", {"members": 2, "processes": processes}
    small.train(whole, 4, members=2)
    small.train(run, 2, members=2)
    path = run / "metrics.csv"
    good = path.read_bytes()
    damaged = {
        "flipped": good.replace(b"member1,128,", b"member1,1\xff8,"),
        "garbage": good + b"member0,2,x\n" + b"\x00" * 50 + b"\n",
        "steps": good + b"member0," + b"1" * 5000 + b"," * (good.partition(b"\n")[0].count(b",") - 1) + b"\n",
        "header": good.replace(b"learner,", b"lea?ner,"),
        "zeros": b"\x00" * len(good),
        "binary": bytes(range(256)) * 9,
    }
    path.unlink()
    if damage == "folder":
        path.mkdir()
    else:
        path.write_bytes(damaged[damage])
    assert small.train(run, 4, resume=True, **members).is_complete
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"expgen: {path}: ") and "metrics.csv.damaged-1" in line
    if damage in damaged:
        assert (run / "metrics.csv.damaged-1").read_bytes() == damaged[damage]
    assert all(equal(small.state(whole, member), small.state(run, member)) for member in ("member0", "member1"))
    steps = [int(row["env_steps"]) for row in metrics(run)]
    assert len([step for step in steps if step <= 2 * small.update_steps]) == rows_kept
    assert len([step for step in steps if step > 2 * small.update_steps]) == 4
    assert small.train(run, 5, resume=True).is_complete and not (run / "metrics.csv.damaged-2").exists()


def test_run_without_a_valid_checkpoint_is_refused_and_unchanged(
    small: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    small.train(run, 3)
    for path in run.rglob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    rows = metrics(run)
    for words in (("train", "--resume", "--run", run, "--device", "cpu"), ("evaluate", run, "--episodes", "1")):
        outcome = command(*words)
        lines = outcome.err.splitlines()
        assert outcome.status == 2 and len(lines) == 2
        assert lines[0].endswith("using the one before it") and all(line.startswith("expgen: ") for line in lines)
        assert f"{min(run.rglob('*.safetensors'))} is not a complete expgen checkpoint; accepted:" in lines[1]
    assert metrics(run) == rows


FULL_DISK = """
import resource, sys
from expgen.cli.main import main
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("what", ["checkpoint", "metrics"])
def test_full_disk_is_reported_in_one_line_and_loses_no_checkpoint(what: str, small: Any, tmp_path: Path) -> None:
    whole, run = tmp_path / "whole", tmp_path / "run"
    small.train(whole, 40)
    small.train(run, 2)
    if what == "metrics":  # no checkpoint for an hour, so that metrics.csv fills the disk
        data = json.loads((run / "config.json").read_text())
        data["train"]["checkpoint_seconds"] = 3600.0
        (run / "config.json").write_text(json.dumps(data, indent=2))
    config, checkpoint = (run / "config.json").stat().st_size, small.newest(run).stat().st_size
    limit = {"checkpoint": checkpoint // 2, "metrics": config + 200}[what]
    words = ["train", "--resume", "--run", str(run), "--steps", str(40 * small.update_steps), "--device", "cpu"]
    program = [sys.executable, "-c", FULL_DISK, str(limit), *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("expgen: ")]  # without banner and progress
    assert done.returncode == 1 and line.startswith("expgen: cannot write ") and "File too large; accepted: " in line
    assert ("checkpoints" in line) == (what == "checkpoint")
    assert small.facts(run)["updates"] == 2 and not list(run.rglob("*.part"))
    assert expgen.train(run=run, resume=True, device="cpu").is_complete  # there is space again
    assert small.facts(run)["updates"] == 40
    assert metrics(run) == metrics(whole)


def test_unwritable_folder_is_refused(small: Any, refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    line = refused(*small.flags(tmp_path / "file" / "run"))
    assert line.startswith(f"expgen: cannot write {tmp_path}/file/run/scores.csv: Not a directory; ")
    assert line.endswith("accepted: a writable folder with space")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("content", ["notes", "algorithm,game\n", "{header}\ngarbage\n{row}\n"])
def test_unreadable_scores_are_refused_before_training(
    content: str, small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    small.train(run, updates=1, eval_every=small.update_steps)
    header, row, *_ = (run / "scores.csv").read_text().splitlines()
    (run / "scores.csv").write_text(content.format(header=header, row=row))
    before = small.state(run), (run / "metrics.csv").read_bytes()
    line = refused("train", "--run", run, "--resume", "--steps", 4 * small.update_steps, "--device", "cpu")
    assert f"{run}/scores.csv" in line
    assert (run / "metrics.csv").read_bytes() == before[1] and small.facts(run)["updates"] == 1
