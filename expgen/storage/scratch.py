"""Scratch folders, deleted when the process ends; the next process deletes those of killed processes."""

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from expgen.errors import InputError
from expgen.files import open_regular

PREFIX, LOCK = "expgen-", "lock"


def scratch_folder() -> Path:
    """Return a new empty folder below TMPDIR."""
    return Path(tempfile.mkdtemp(dir=_root(os.getpid())))


def keep_scratch() -> None:
    """Keep this process's scratch folders when it ends, since they hold data that was not uploaded."""
    (_root(os.getpid()) / LOCK).unlink(missing_ok=True)


@cache
def _root(pid: int) -> Path:
    """Return the root of this process's scratch folders, whose lock is held until the process ends."""
    for lock_file in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError, InputError), open_regular(lock_file) as lock:  # skips locks that are held
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock_file.parent, ignore_errors=True)
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock_folder(root)
    atexit.register(_remove, root, pid)
    return root


def lock_folder(root: Path) -> None:
    """Hold the lock of `root` until the process ends: other processes then leave it, and this one deletes it."""
    fcntl.flock(os.open(root / "new", os.O_CREAT), fcntl.LOCK_EX)
    os.rename(root / "new", root / LOCK)  # other processes never see it unlocked


def _remove(root: Path, pid: int) -> None:
    if pid == os.getpid() and (root / LOCK).exists():  # not in a forked process, not after keep_scratch
        shutil.rmtree(root, ignore_errors=True)
