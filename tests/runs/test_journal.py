"""journal.json: write and read; whether the process of an entry is alive."""

import dataclasses
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from expgen.runs.folder import RunFolder
from expgen.runs.journal import Entry, is_alive, read_journal, start_of, write_journal
from expgen.training.sessions import Session

ENTRY = Entry("a1", "node7", 42, "boot 99", "train", Session(1e9, 2.5, "abc"), "failed", 'no "space"\nleft')


def test_journal_round_trips(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    entries = [ENTRY, dataclasses.replace(ENTRY, owner="b2", work="score", state="done", message="")]
    write_journal(folder, entries)
    assert read_journal(folder) == entries
    assert json.loads(folder.journal_file.read_text())[0]["session"] == {"began": 1e9, "seconds": 2.5, "commit": "abc"}


def test_run_without_journal_has_no_entries(tmp_path: Path) -> None:
    assert read_journal(RunFolder(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("state", "fine"), ("work", "sleep"), ("pid", "many"), ("session", [1, 2, "a"]), ("session", None), ("host", ...)]
    + [("session", {"began": began, "seconds": 1, "commit": "a"}) for began in (-1, 1e300, float("nan"), "now")],
)
def test_invalid_entry_makes_the_journal_unreadable(name: str, value: object, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_journal(folder, [ENTRY])
    (data,) = json.loads(folder.journal_file.read_text())
    changed = {**data, name: value} if value is not ... else {key: data[key] for key in data if key != name}
    folder.journal_file.write_text(json.dumps([changed]))
    assert read_journal(folder) == []


def test_is_alive_compares_pid_and_start_time(tmp_path: Path) -> None:
    here = dataclasses.replace(ENTRY, host=socket.gethostname())
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    entry = dataclasses.replace(here, pid=child.pid, started=start_of(child.pid) or "")
    assert entry.started and is_alive(entry) is True
    assert is_alive(dataclasses.replace(entry, started="")) is True  # written by an earlier version
    assert is_alive(dataclasses.replace(entry, started=start_of(os.getpid()) or "")) is False  # the pid was reused
    assert is_alive(dataclasses.replace(entry, host="node7")) is None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_alive(entry) is False  # a zombie
    child.communicate()
    assert is_alive(entry) is False
