"""Scratch folders: they last as long as the process, and the next process deletes those of killed ones."""

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
    """A new empty folder below TMPDIR."""
    return Path(tempfile.mkdtemp(dir=_root(os.getpid())))


def keep_scratch() -> None:
    """Leave this process's scratch folders when it ends, for they hold what exists nowhere else."""
    (_root(os.getpid()) / LOCK).unlink(missing_ok=True)


@cache
def _root(pid: int) -> Path:
    """The folder of this process, which holds its lock for as long as it lives."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with contextlib.suppress(OSError, InputError), open_regular(left) as lock:  # in use, or of another user
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left.parent, ignore_errors=True)
    root = Path(tempfile.mkdtemp(prefix=PREFIX))
    fcntl.flock(os.open(root / "new", os.O_CREAT), fcntl.LOCK_EX)
    os.rename(root / "new", root / LOCK)  # nobody sees it unlocked
    atexit.register(_remove, root, pid)
    return root


def _remove(root: Path, pid: int) -> None:
    if pid == os.getpid() and (root / LOCK).exists():  # not in a fork, not if kept
        shutil.rmtree(root, ignore_errors=True)
