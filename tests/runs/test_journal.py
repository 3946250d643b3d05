"""journal.json: written and read back, of earlier versions too; which process is alive."""

import dataclasses
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from expgen.runs.folder import RunFolder
from expgen.runs.journal import Entry, is_alive, is_damaged, read_journal, start_of, write_journal
from expgen.training.sessions import Session

ENTRY = Entry("a1", "node7", 42, "boot 99", "train", Session(1e9, 2.5, "abc"), "failed", 'no "space"\nleft')


def test_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    entries = [ENTRY, dataclasses.replace(ENTRY, owner="b2", work="score", state="done", message="")]
    write_journal(folder, entries)
    assert read_journal(folder) == entries and not is_damaged(folder)
    assert json.loads(folder.journal_file.read_text())[0]["session"] == {"began": 1e9, "seconds": 2.5, "commit": "abc"}


def test_run_without_a_journal_has_no_entries(tmp_path: Path) -> None:
    assert read_journal(RunFolder(tmp_path)) == [] and not is_damaged(RunFolder(tmp_path))


@pytest.mark.parametrize(
    ("name", "value"),
    [("state", "fine"), ("work", "sleep"), ("pid", "many"), ("session", [1, 2, "a"]), ("session", None), ("host", ...)]
    + [("session", {"began": began, "seconds": 1, "commit": "a"}) for began in (-1, 1e300, float("nan"), "now")],
)
def test_entry_that_no_process_wrote_makes_the_journal_a_damaged_one(name: str, value: object, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_journal(folder, [ENTRY])
    (data,) = json.loads(folder.journal_file.read_text())
    changed = {**data, name: value} if value is not ... else {key: data[key] for key in data if key != name}
    folder.journal_file.write_text(json.dumps([changed]))
    assert read_journal(folder) == [] and is_damaged(folder)


def test_process_is_alive_while_it_has_the_same_start(tmp_path: Path) -> None:
    here = dataclasses.replace(ENTRY, host=socket.gethostname())
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    entry = dataclasses.replace(here, pid=child.pid, started=start_of(child.pid) or "")
    assert entry.started and is_alive(entry) is True
    assert is_alive(dataclasses.replace(entry, started="")) is True  # of earlier versions, which did not keep it
    assert is_alive(dataclasses.replace(entry, started=start_of(os.getpid()) or "")) is False  # the number, used again
    assert is_alive(dataclasses.replace(entry, host="node7")) is None
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_alive(entry) is False  # though nobody has waited for it yet
    child.communicate()
    assert is_alive(entry) is False
