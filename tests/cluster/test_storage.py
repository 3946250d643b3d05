"""Storage that is full or read-only: a real file system of a few MiB, if it can be mounted."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from expgen.reproduce.run_job import run_job, score_files
from expgen.training.loop import Watcher
from tests.conftest import SmallRun

JOB = SmallRun().job("small")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(path)]
    try:
        mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no right to mount a file system")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(disk: Path) -> Callable[[], None]:
    """Fill the disk; return a function that frees space."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return ballast.unlink


def refuse(disk: Path) -> Callable[[], None]:
    os.sync()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    return lambda: subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True) and None


def test_job_fails_on_a_full_disk_and_resumes_when_there_is_space(disk: Path, tmp_path: Path) -> None:
    relieve: list[Callable[[], None]] = []

    def at_half(learner: str, row: dict[str, float]) -> None:
        if row["env_steps"] == JOB.settings["steps"] // 2:
            relieve.append(fill(disk))

    full = run_job(JOB, disk, "", "cpu", Watcher(on_row=at_half))
    assert full.status == "refused" and "No space left on device" in full.message and "\n" not in full.message
    relieve[0]()
    check_it_goes_on(disk, tmp_path)


def test_job_fails_on_read_only_storage(disk: Path, tmp_path: Path) -> None:
    stopped = run_job(JOB, disk, "", "cpu", Watcher(should_stop=lambda: True))
    assert stopped.status == "stopped"
    allow = refuse(disk)
    refused = run_job(JOB, disk, "", "cpu")
    assert refused.status == "refused" and "Read-only file system" in refused.message
    allow()
    check_it_goes_on(disk, tmp_path)


def check_it_goes_on(disk: Path, tmp_path: Path) -> None:
    assert run_job(JOB, disk, "", "cpu").status == "done"
    assert run_job(JOB, tmp_path / "undisturbed", "", "cpu").status == "done"
    one, other = ([file.read_text() for file in score_files(JOB, out)] for out in (disk, tmp_path / "undisturbed"))
    assert one == other and not list(disk.rglob("*.part"))
