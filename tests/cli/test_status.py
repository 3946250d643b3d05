"""expgen status: states, steps, time left and bad folders."""

import dataclasses
import os
from pathlib import Path

import pytest

from expgen.reproduce.job import Job, write_job_list
from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal, write_journal
from expgen.runs.run_lock import own_run
from expgen.runs.status import run_status


@pytest.fixture
def halfway(small, tmp_path: Path) -> Path:
    """A run with two of four updates done."""
    rows: list[str] = []
    small.train(
        tmp_path / "runs" / "half", 4, on_row=lambda name, row: rows.append(name), should_stop=lambda: len(rows) >= 2
    )
    return tmp_path / "runs" / "half"


def change(run: Path, **facts: object) -> None:
    folder = RunFolder(run)
    *earlier, last = read_journal(folder)
    write_journal(folder, [*earlier, dataclasses.replace(last, **facts)])


def test_status_shows_steps_and_time_left(halfway: Path, small) -> None:
    status = run_status(halfway)
    assert (status.state, status.steps, status.total_steps) == (
        "stopped", 2 * small.update_steps, 4 * small.update_steps)  # fmt: skip
    assert status.seconds_left == pytest.approx(small.facts(halfway)["seconds"], rel=0.2)


@pytest.mark.parametrize(
    ("facts", "state"),
    [({"pid": os.getpid()}, "running"), ({"pid": 2**22 + 1}, "dead"), ({"host": "elsewhere"}, "running")],
)
def test_status_distinguishes_running_and_dead_runs(facts: dict[str, object], state: str, halfway: Path) -> None:
    change(halfway, state="running", **facts)
    assert run_status(halfway).state == state


def test_status_of_an_inactive_remote_run_is_silent(halfway: Path) -> None:
    change(halfway, state="running", host="elsewhere")
    for file in (halfway / "metrics.csv", halfway / "journal.json"):
        os.utime(file, (1e9, 1e9))
    assert run_status(halfway).state == "silent"


def test_status_lists_the_jobs_of_a_reproduction(halfway: Path, command, small) -> None:
    out = halfway.parent.parent
    names = ("whole", "half", "next", "bad", "scored")
    for name in ("whole", "scored"):
        small.train(out / "runs" / name, 1)
    change(out / "runs" / "scored", state="running", work="score")
    write_job_list(out, [Job(name, "minimaze", "ppo", "smoke", {}) for name in names], "smoke")
    change(halfway, state="running")
    with pytest.raises(ValueError), own_run(RunFolder(out / "runs" / "bad")):
        raise ValueError("--levels is 0,\naccepted: more")
    status, text, _ = command("status", out)
    lines = {line.split()[0]: line.split() for line in text.splitlines()}
    states = {name: lines[name][1] for name in names}
    assert states == {"whole": "done", "half": "running", "next": "waiting", "bad": "failed", "scored": "scoring"}
    assert status == 1 and "1 failed" in text and "ValueError: --levels is 0, accepted: more" in text
    status, text, _ = command("status", out / "runs" / "whole", halfway)
    assert status == 0 and "1 done" in text and "1 running" in text


@pytest.mark.parametrize("content", ["", "{}", '{"train": {"algo": "chess"}, "spec": {}}', "[" * 99_999, "\x00"])
def test_damaged_run_does_not_hide_the_others(content: str, halfway: Path, small, command) -> None:
    small.train(halfway.parent / "bad", 1)
    (halfway.parent / "bad" / "config.json").write_text(content)
    status, text, err = command("status", halfway.parent)
    lines = {line.split()[0]: line.split() for line in text.splitlines()}
    assert status == 1 and err == "" and lines["half"][1] == "stopped" and lines["bad"][1] == "damaged"
    assert "config.json" in text or "--algo is 'chess'" in text


@pytest.mark.parametrize("content", [b"\x00\xff\n\xfe\n", b"learner\n1\n", b"notes"])
def test_damaged_metrics_leave_the_steps_of_the_checkpoints(content: bytes, halfway: Path, small) -> None:
    (halfway / "metrics.csv").write_bytes(content)
    status = run_status(halfway)
    assert (status.state, status.steps, status.seconds_left) == ("stopped", 2 * small.update_steps, None)


def test_status_rejects_other_folders(command, refused, tmp_path: Path) -> None:
    assert "accepted: run folders" in refused("status", tmp_path / "absent")
    assert command("status", tmp_path / "absent").out == ""  # no header of an empty table
    assert "has no run" in refused("status", tmp_path)
    for content, message in (
        ("notes", "is not JSON"),
        ("[]", "is not a list of jobs"),
        ('{"jobs": 3}', "is not a list"),
    ):
        (tmp_path / "jobs.json").write_text(content)
        assert message in refused("status", tmp_path)


def test_status_escapes_control_characters_in_names(halfway: Path, command) -> None:
    halfway.rename(halfway.with_name("\x1b[31mred"))
    assert "\\x1b[31mred" in command("status", halfway.parent).out
    missing = command("status", halfway.parent / "\x1b[2Jnone")
    assert missing.status == 2 and "\x1b" not in missing.err and "\\x1b[2Jnone" in missing.err


def test_status_help_explains_how_to_resume(command) -> None:
    text = " ".join(command("status", "--help").out.split())
    assert "To resume a run, repeat its command (expgen train: with --resume)." in text
