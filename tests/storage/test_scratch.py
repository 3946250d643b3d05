"""Scratch folders: deleted with their process or by the next one, or kept."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys
from expgen.storage.scratch import keep_scratch, scratch_folder
folder = scratch_folder()
(folder / "work").write_text("mine")
for word in sys.argv[1:]:
    if word == "keep": keep_scratch()
    if word == "kill": print(folder, flush=True); os.kill(os.getpid(), signal.SIGKILL)
    if word == "fork" and os.fork() == 0: sys.exit()
    if word == "fork": os.wait(); assert (folder / "work").exists()
    if word == "wait": print(folder, flush=True); input()
print(folder)
"""


@pytest.fixture
def run(tmp_path: Path):
    """Run a process with scratch folders below `tmp_path`; return its folder."""

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words], env={**os.environ, "TMPDIR": str(tmp_path)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


def folder_of(process: subprocess.Popen[str]) -> Path:
    out, _ = process.communicate()
    return Path(out.split()[0])


def test_scratch_folder_is_deleted_with_its_process(run, tmp_path: Path) -> None:
    process = run()
    assert folder_of(process).parent.parent == tmp_path and process.returncode == 0
    assert not list(tmp_path.iterdir())


def test_forked_process_keeps_its_parent_s_scratch_folder(run, tmp_path: Path) -> None:
    process = run("fork")
    folder_of(process)
    assert process.returncode == 0 and not list(tmp_path.iterdir())


def test_next_process_deletes_scratch_folders_of_killed_processes_only(run, tmp_path: Path) -> None:
    killed = run("kill")
    left = folder_of(killed)
    assert killed.returncode == -signal.SIGKILL and (left / "work").exists()
    living = run("wait")
    assert living.stdout is not None
    in_use = Path(living.stdout.readline().strip())
    assert not left.exists()
    folder_of(run())
    assert (in_use / "work").exists()
    living.communicate("\n")
    assert not list(tmp_path.iterdir())


def test_kept_scratch_folder_is_not_deleted(run, tmp_path: Path) -> None:
    for words in (["keep"], ["keep", "kill"]):
        kept = folder_of(run(*words))
        folder_of(run())
        assert (kept / "work").read_text() == "mine"


def test_pipe_in_place_of_a_lock_does_not_block(run, tmp_path: Path) -> None:
    (tmp_path / "expgen-theirs").mkdir()
    os.mkfifo(tmp_path / "expgen-theirs" / "lock")
    process = run()
    out, _ = process.communicate(timeout=60)
    assert Path(out.split()[0]).parent.parent == tmp_path and (tmp_path / "expgen-theirs").exists()


def test_folders_of_other_programs_are_left_alone(run, tmp_path: Path) -> None:
    other = Path(tempfile.mkdtemp(prefix="expgen-", dir=tmp_path))
    (other / "work").touch()
    folder_of(run())
    assert (other / "work").exists()
