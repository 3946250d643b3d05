"""RunLock: which process owns a run. A newer process takes ownership and the old one stops at its next write.

On a cluster a machine may be taken for dead and still write. So the owner is named by the last entry of the run's
journal, and every process checks before each write that the last entry is its own.
"""

import contextlib
import fcntl
import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from expgen.errors import FailedStorage, InputError, StorageError, TakenOver, error_line, write_error
from expgen.files import make_folder
from expgen.provenance import commit
from expgen.runs.folder import RunFolder
from expgen.runs.journal import Entry, State, Work, is_alive, is_damaged, read_journal, start_of, write_journal
from expgen.training.sessions import Session

SAVE_SECONDS = 60.0  # of work that a kill may leave out of the journal


class RunLock:
    """One process's ownership of a run, and its entry in the journal."""

    def __init__(self, folder: RunFolder, work: Work = "train", save_seconds: float = SAVE_SECONDS) -> None:
        """`work` is what the owner does with the run; its time is saved every `save_seconds`."""
        self.folder, self.owner, self.save_seconds = folder, uuid.uuid4().hex, save_seconds
        process = socket.gethostname(), os.getpid(), start_of(os.getpid()) or ""
        self.entry = Entry(self.owner, *process, work, Session(time.time(), 0.0, commit()), "running")
        self.began = self.saved = time.monotonic()

    def take(self) -> None:
        """Become the owner; whoever was it stops at its next write."""
        make_folder(self.folder.path)
        with _locked(self.folder.path):
            if is_damaged(self.folder):
                print(f"expgen: {self.folder.journal_file} is damaged; a new one begins", file=sys.stderr)
            write_journal(self.folder, [*read_journal(self.folder), self.entry])

    def check(self) -> None:
        """Before each write: TakenOver if another process owns the run, FailedStorage if its folder was deleted."""
        check_owner(self.folder, self.owner)
        if time.monotonic() - self.saved >= self.save_seconds:
            self.save("running")

    def save(self, state: State, message: str = "") -> None:
        """Write how long this process has worked and what has become of the run."""
        self.saved = time.monotonic()
        session = self.entry.session._replace(seconds=round(self.saved - self.began, 3))
        self.entry = replace(self.entry, session=session, state=state, message=message)
        with _locked(self.folder.path):
            check_owner(self.folder, self.owner)
            write_journal(self.folder, [*read_journal(self.folder)[:-1], self.entry])


@contextlib.contextmanager
def own_run(folder: RunFolder, work: Work = "train") -> Iterator[RunLock]:
    """Own the run in `folder` meanwhile; an error that ends it is written to the journal.

    What can no longer be written there is a FailedStorage.
    """
    folder.check_entries()
    lock = RunLock(folder, work)
    lock.take()
    folder.sweep()  # after it, so that a process whose file this deletes finds out why
    try:
        yield lock
    except TakenOver:
        raise
    except BaseException as error:
        with contextlib.suppress(InputError):  # no space left for this either; TakenOver explains the error
            lock.save("failed", error_line(error))
        if isinstance(error, StorageError):  # it could be written until now: that is a failure, not bad input
            raise FailedStorage(str(error)) from None
        raise


def check_owner(folder: RunFolder, owner: str) -> None:
    """TakenOver unless `owner` owns the run; FailedStorage if its folder was deleted."""
    if not folder.journal_file.exists():
        raise FailedStorage(f"{folder.path} was deleted while it was being written; nothing more is saved")
    entries = read_journal(folder)
    if entries and entries[-1].owner != owner:
        raise TakenOver(f"another process has taken over {folder.path}")


def refuse_if_alive(folder: RunFolder) -> None:
    """InputError if another process of this machine works on the run now."""
    for entry in read_journal(folder)[-1:]:
        if entry.state == "running" and entry.pid != os.getpid() and is_alive(entry):
            since = datetime.fromtimestamp(entry.session.began).strftime("%Y-%m-%d %H:%M:%S")
            what = f"{folder.path} is in use by process {entry.pid} of this machine since {since}"
            raise InputError(f"{what}; wait until it ends, or stop it and continue here with --take-over")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """No other process changes the journal meanwhile. Where the file system has no locks, `check_owner` must do."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise write_error(folder, error) from None
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
