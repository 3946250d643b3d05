"""expgen status: what folders tell."""

import json
import os
from pathlib import Path

import pytest

from expgen.reproduce.job import Job, JobResult
from expgen.reproduce.ledger import JobLedger
from expgen.runs.folder import RunFolder
from expgen.runs.sitting import read_sitting
from expgen.runs.status import run_status


@pytest.fixture
def halfway(small, tmp_path: Path) -> Path:
    """Two of four updates done."""
    rows: list[str] = []
    small.train(
        tmp_path / "runs" / "half", 4, on_row=lambda name, row: rows.append(name), should_stop=lambda: len(rows) >= 2
    )
    return tmp_path / "runs" / "half"


def change(run: Path, **facts: object) -> None:
    folder = RunFolder(run)
    folder.sitting_file.write_text(json.dumps({**read_sitting(folder), **facts}))


def test_steps_and_time_left(halfway: Path, small) -> None:
    status = run_status(halfway)
    assert (status.state, status.steps, status.total_steps) == (
        "stopped", 2 * small.update_steps, 4 * small.update_steps)  # fmt: skip
    assert status.seconds_left == pytest.approx(small.facts(halfway)["seconds"], rel=0.2)


@pytest.mark.parametrize(
    ("facts", "state"),
    [({"pid": os.getpid()}, "running"), ({"pid": 2**22 + 1}, "dead"), ({"host": "elsewhere"}, "running")],
)
def test_whether_it_lives(facts: dict[str, object], state: str, halfway: Path) -> None:
    change(halfway, state="running", **facts)
    assert run_status(halfway).state == state


def test_no_news_from_elsewhere_is_silence(halfway: Path) -> None:
    change(halfway, state="running", host="elsewhere")
    for file in (halfway / "metrics.csv", halfway / "sitting.json"):
        os.utime(file, (1e9, 1e9))
    assert run_status(halfway).state == "silent"


def test_jobs_of_a_reproduction(halfway: Path, command, small) -> None:
    out = halfway.parent.parent
    small.train(out / "runs" / "whole", 1)
    ledger = JobLedger(out)
    jobs = {name: Job(name, "minimaze", "ppo", "smoke", {}) for name in ("whole", "half", "next", "bad")}
    ledger.plan(jobs.values())
    change(halfway, state="running", pid=os.getpid())
    ledger.note(JobResult(jobs["bad"], "refused", "--levels is 0,\naccepted: more", 0.1))
    status, text, _ = command("status", out)
    lines = {line.split()[0]: line.split() for line in text.splitlines()}
    states = {name: lines[name][1] for name in jobs}
    assert states == {"whole": "scoring", "half": "running", "next": "waiting", "bad": "failed"}
    assert status == 1 and "1 failed" in text and "--levels is 0" in text
    ledger.note(JobResult(jobs["bad"], "done"))
    ledger.note(JobResult(jobs["whole"], "done"))
    status, text, _ = command("status", out / "runs" / "whole", halfway)
    assert status == 0 and "1 done" in text and "1 running" in text


def test_what_is_no_run_is_refused(refused, tmp_path: Path) -> None:
    assert "accepted: run folders" in refused("status", tmp_path / "absent")
    assert "holds no run" in refused("status", tmp_path)
    (tmp_path / "jobs.csv").write_text("job,status,seconds,message\na,done,much,\n")
    assert "no list of jobs" in refused("status", tmp_path)


def test_terminal_escapes_in_names_are_shown_as_text(halfway: Path, command) -> None:
    halfway.rename(halfway.with_name("\x1b[31mred"))
    assert "\\x1b[31mred" in command("status", halfway.parent).out
    missing = command("status", halfway.parent / "\x1b[2Jnone")
    assert missing.status == 2 and "\x1b" not in missing.err and "\\x1b[2Jnone" in missing.err
