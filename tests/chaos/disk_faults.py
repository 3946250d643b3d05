"""Faults of the disk of a cluster: full or read-only."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.scene import JOBS, Fault, Scene
from tests.cluster.conftest import until, worker_of

DISK_MIB = 512


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[bool]:
    """Mount a small file system at `path`, if allowed."""
    path.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(path)]
    is_mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(path)], check=False)


def fill_disk(scene: Scene) -> None:
    scene.worker()
    ballast = scene.out / "ballast"
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
        while True:
            file.write(bytes(65_536))
    scene.log[-1]["driver_status"] = scene.end_driver()
    ballast.unlink()
    scene.driver = scene.start()


def refuse_writes(scene: Scene) -> None:
    """Make the disk read-only; the workers are killed first, since the kernel refuses while files are open."""
    scene.worker()

    def is_refused() -> bool:
        for pid in filter(None, (worker_of(scene.out / "runs" / name) for name in JOBS)):
            os.kill(pid, signal.SIGKILL)
        return remount(scene.out, "ro")

    until(is_refused, "a moment in which no file is open")
    scene.log[-1]["driver_status"] = scene.end_driver()
    remount(scene.out, "rw")
    scene.driver = scene.start()


def remount(path: Path, how: str) -> bool:
    words = ["mount", "-o", f"remount,{how}", str(path)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


DISK_FAULTS: list[Fault] = [fill_disk, refuse_writes]
