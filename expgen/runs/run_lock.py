"""RunLock: which process owns a run. A newer process takes ownership and the old one stops at its next write.

On a cluster a machine that seems dead may still write. So the last entry of the run's journal names the owner, and
every process checks before each write that the last entry is its own.
"""

import contextlib
import fcntl
import os
import socket
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
from expgen.runs.journal import Entry, State, Work, is_alive, read_journal, start_of, write_journal
from expgen.text import notify
from expgen.training.sessions import Session

SAVE_SECONDS = 60.0  # between saves of the working time to the journal; a kill loses at most this


class RunLock:
    """One process's ownership of a run, and its entry in the journal."""

    def __init__(self, folder: RunFolder, work: Work = "train", save_seconds: float = SAVE_SECONDS) -> None:
        """`work` is what the owner does with the run; its working time is saved every `save_seconds`."""
        self.folder, self.owner, self.save_seconds = folder, uuid.uuid4().hex, save_seconds
        self.entry = Entry(
            owner=self.owner,
            host=socket.gethostname(),
            pid=os.getpid(),
            started=start_of(os.getpid()) or "",
            work=work,
            session=Session(time.time(), 0.0, commit()),
            state="running",
        )
        self.began = self.saved = time.monotonic()

    def take(self) -> None:
        """Become the owner; the previous owner stops at its next write."""
        make_folder(self.folder.path)
        with _locked(self.folder.path):
            entries = read_journal(self.folder)
            if not entries and self.folder.journal_file.exists():
                notify(f"expgen: {self.folder.journal_file} is damaged; starting a new one")
            write_journal(self.folder, [*entries, self.entry])

    def check(self) -> None:
        """Raise TakenOver or FailedStorage as `check_owner` does; called before each write."""
        check_owner(self.folder, self.owner)
        if time.monotonic() - self.saved >= self.save_seconds:
            self.save("running")

    def save(self, state: State, message: str = "") -> None:
        """Write the working time of this process and the state of the run to the journal."""
        self.saved = time.monotonic()
        session = self.entry.session._replace(seconds=round(self.saved - self.began, 3))
        self.entry = replace(self.entry, session=session, state=state, message=message)
        with _locked(self.folder.path):
            check_owner(self.folder, self.owner)
            write_journal(self.folder, [*read_journal(self.folder)[:-1], self.entry])


@contextlib.contextmanager
def own_run(folder: RunFolder, work: Work = "train") -> Iterator[RunLock]:
    """Own the run in `folder` inside the `with` block; an error that ends the block is written to the journal.

    A StorageError in the block becomes a FailedStorage.
    """
    folder.check_entries()
    lock = RunLock(folder, work)
    lock.take()
    folder.delete_partial_files()  # after `take`, so that a process whose file this deletes raises TakenOver
    try:
        yield lock
    except TakenOver:
        raise
    except BaseException as error:
        with contextlib.suppress(InputError):  # the disk may be full; TakenOver replaces the error
            lock.save("failed", error_line(error))
        if isinstance(error, StorageError):  # the folder was writable before: a failure, not bad input
            raise FailedStorage(str(error)) from None
        raise


def check_owner(folder: RunFolder, owner: str) -> None:
    """Raise TakenOver unless `owner` owns the run, and FailedStorage if its folder was deleted."""
    if not folder.journal_file.exists():
        raise FailedStorage(f"{folder.path} was deleted while it was being written; nothing more is saved")
    entries = read_journal(folder)
    if entries and entries[-1].owner != owner:
        raise TakenOver(f"another process has taken over {folder.path}")


def refuse_if_alive(folder: RunFolder) -> None:
    """Raise InputError if another process of this machine is working on the run."""
    for entry in read_journal(folder)[-1:]:
        if entry.state == "running" and entry.pid != os.getpid() and is_alive(entry):
            since = datetime.fromtimestamp(entry.session.began).strftime("%Y-%m-%d %H:%M:%S")
            what = f"{folder.path} is in use by process {entry.pid} of this machine since {since}"
            raise InputError(f"{what}; wait until it ends, or stop it and continue here with --take-over")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the journal against other processes. On a file system without locks there is only `check_owner`."""
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
