"""RunLock: a run is written by one process at a time, which the last entry of its journal names."""

import os
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import FailedStorage, InputError, TakenOver
from expgen.provenance import commit
from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal
from expgen.runs.run_lock import RunLock, check_owner, own_run, refuse_if_alive
from tests.children import until


def test_journal_has_an_entry_for_each_session(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path / "run", 2)
    small.train(tmp_path / "run", 4, resume=True, should_stop=lambda: True)
    first, second = read_journal(RunFolder(tmp_path / "run"))
    assert (first.state, second.state) == ("done", "stopped")
    assert first.session.began + first.session.seconds <= second.session.began and first.session.seconds > 0
    assert first.session.commit == commit() and (first.host, first.pid) == (socket.gethostname(), os.getpid())


def test_failure_is_written_to_the_journal_in_one_line_and_raised(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), own_run(folder):
        raise ZeroDivisionError("of a\ndivision")
    (entry,) = read_journal(folder)
    assert (entry.state, entry.message) == ("failed", "ZeroDivisionError: of a division")


def test_taken_over_process_stops_at_its_next_write(small: Any, equal: Any, tmp_path: Path):
    folder = RunFolder(tmp_path / "run")
    later = RunLock(folder)
    written: list[bytes] = []

    def take_over(learner: str, row: dict[str, float]) -> None:
        if row["env_steps"] == 2 * small.update_steps:
            later.take()
            written.append(folder.metrics_file.read_bytes())

    with pytest.raises(TakenOver, match="another process has taken over"):
        small.train(folder.path, 6, on_row=take_over)
    assert written == [folder.metrics_file.read_bytes()] and small.facts(folder.path)["updates"] == 2
    assert read_journal(folder)[-1].owner == later.owner  # the earlier process writes no failure
    small.train(folder.path, 6, resume=True)
    small.train(tmp_path / "whole", 6)
    assert equal(small.state(folder.path), small.state(tmp_path / "whole"))


def test_error_after_a_takeover_becomes_taken_over(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(TakenOver), own_run(folder):
        RunLock(folder).take()
        raise InputError("cannot write a file that the other process has deleted")
    assert [entry.state for entry in read_journal(folder)] == ["running", "running"]


def test_working_time_is_saved_periodically(tmp_path: Path) -> None:
    for name, save_seconds in (("seldom", 1e6), ("often", 0.0)):
        lock = RunLock(RunFolder(tmp_path / name), save_seconds=save_seconds)
        lock.began -= 500
        lock.take()
        lock.check()
    seldom, often = (read_journal(RunFolder(tmp_path / name))[0].session.seconds for name in ("seldom", "often"))
    assert seldom == 0 and 500 <= often < 560


def test_earlier_owner_cannot_save_after_a_takeover(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    earlier, later = RunLock(folder), RunLock(folder)
    earlier.take()
    later.take()
    with pytest.raises(TakenOver):
        earlier.save("done")
    check_owner(folder, later.owner)
    assert [entry.state for entry in read_journal(folder)] == ["running", "running"]


def test_deleted_run_folder_is_not_recreated(tmp_path: Path) -> None:
    lock = RunLock(RunFolder(tmp_path / "run"))
    lock.take()
    shutil.rmtree(tmp_path / "run")
    for write in (lock.check, lambda: lock.save("done")):
        with pytest.raises((FailedStorage, InputError), match="run"):
            write()
    assert not (tmp_path / "run").exists()


def test_partial_files_of_killed_processes_are_deleted(small: Any, tmp_path: Path) -> None:
    left = tmp_path / "run" / "checkpoints" / "member0" / "000000000128.safetensors.0badcafe.part"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    small.train(tmp_path / "run", 1)
    assert not left.exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '[{"state": 3}]', "\x00" * 99, "[" * 100_000])
def test_resume_replaces_a_damaged_journal(
    content: str, small: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(tmp_path / "run")
    small.train(folder.path, 1)
    folder.journal_file.write_text(content)
    assert small.train(folder.path, 2, resume=True).is_complete
    assert capsys.readouterr().err == f"expgen: {folder.journal_file} is damaged; starting a new one\n"
    assert [entry.state for entry in read_journal(folder)] == ["done"]


def test_run_in_use_is_refused_without_take_over(small: Any, process: Any, refused: Any, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer = process(*small.flags(folder.path, 100_000))
    until(lambda: folder.metrics_file.exists())
    line = refused("train", "--resume", "--run", folder.path, "--device", "cpu")
    assert re.search(rf"run is in use by process {trainer.pid} of this machine since \d{{4}}-\d\d-\d\d \d\d:\d\d", line)
    assert "--take-over" in line and trainer.poll() is None
    with pytest.raises(InputError, match="--take-over"):
        small.train(folder.path, 100_000, resume=True)
    small.train(folder.path, 100_000, resume=True, take_over=True, should_stop=lambda: True)
    _, told = trainer.communicate(timeout=60)
    assert trainer.returncode == 1 and "TakenOver: another process has taken over" in told
    assert [entry.state for entry in read_journal(folder)] == ["running", "stopped"]


def test_run_of_a_killed_process_is_resumed_without_take_over(small: Any, process: Any, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    trainer = process(*small.flags(folder.path, 100_000))
    until(lambda: folder.metrics_file.exists())
    trainer.kill()
    until(lambda: Path(f"/proc/{trainer.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    refuse_if_alive(folder)  # also while it is a zombie
    small.train(folder.path, 100_000, resume=True, should_stop=lambda: True)
    trainer.wait()
