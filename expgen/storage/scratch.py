"""Folders of this machine that last as long as the process; those of processes that were killed are swept away."""

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

PREFIX, LOCK, KEPT = "expgen-", "lock", "kept"


def scratch_folder() -> Path:
    """A new empty one, below TMPDIR."""
    return Path(tempfile.mkdtemp(dir=_root(os.getpid())))


def keep_scratch() -> None:
    """What lies in the scratch folders of this process exists nowhere else: leave it when the process ends."""
    (_root(os.getpid()) / KEPT).touch()


@cache
def _root(pid: int) -> Path:
    """Of the process `pid`, which is this one; locked for as long as it lives."""
    _sweep(Path(tempfile.gettempdir()))
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = _locked(root)
    atexit.register(_leave, root, lock, pid)
    return root


def _leave(root: Path, lock: Any, pid: int) -> None:
    if pid == os.getpid():
        if not (root / KEPT).exists():
            shutil.rmtree(root, ignore_errors=True)
        os.close(lock)


def _locked(root: Path) -> int | None:
    """An open lock; None where another process holds it."""
    lock = os.open(root / LOCK, os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _sweep(where: Path) -> None:
    for root in where.glob(f"{PREFIX}*"):
        if not (root / LOCK).exists() or (root / KEPT).exists():
            continue
        with contextlib.suppress(OSError):  # of another user
            lock = _locked(root)
            if lock is not None:
                shutil.rmtree(root, ignore_errors=True)
                os.close(lock)
