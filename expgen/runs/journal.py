"""journal.json: one entry for each process that worked on a run: host, start, duration, commit and final state.

The process of the last entry owns the run. `RunLock` writes the journal; `status`, `--resume` and `reproduce` read it.
"""

import json
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from expgen.files import read_json, write_atomic
from expgen.runs.folder import RunFolder
from expgen.training.sessions import Session

State = Literal["running", "done", "stopped", "diverged", "failed"]
Work = Literal["train", "score"]
LAST_TIME = 2.0**33  # Unix time of the year 2242


@dataclass(frozen=True)
class Entry:
    """One process's work on a run."""

    owner: str  # random ID of this entry
    host: str
    pid: int
    started: str  # start time of the process, from `start_of`; empty if unknown
    work: Work
    session: Session
    state: State
    message: str = ""  # errors of what failed, or names of learners that diverged


def read_journal(folder: RunFolder) -> list[Entry]:
    """Return the entries of a run, oldest first; none if the journal is missing or damaged."""
    try:
        return [_entry(data) for data in read_json(folder.journal_file)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def write_journal(folder: RunFolder, entries: Iterable[Entry]) -> None:
    """Replace the journal of a run."""
    lines = ",\n  ".join(json.dumps({**asdict(entry), "session": entry.session._asdict()}) for entry in entries)
    write_atomic(folder.journal_file, f"[\n  {lines}\n]\n".encode(), new_folders=0)


def _entry(data: dict[str, Any]) -> Entry:
    """Parse an entry; raise ValueError, KeyError or TypeError if it is invalid."""
    values = data["session"]
    session = Session(float(values["began"]), float(values["seconds"]), str(values["commit"]))
    is_known = data["state"] in get_args(State) and data["work"] in get_args(Work)
    if not is_known or not all(0 <= time < LAST_TIME for time in session[:2]):
        raise ValueError("not an entry that RunLock wrote")
    return Entry(
        owner=str(data["owner"]),
        host=str(data["host"]),
        pid=int(data["pid"]),
        started=str(data["started"]),
        work=data["work"],
        session=session,
        state=data["state"],
        message=str(data.get("message", "")),
    )


def is_alive(entry: Entry) -> bool | None:
    """Whether the process of `entry` still exists; None if it ran on another machine."""
    if entry.host != socket.gethostname():
        return None
    started = start_of(entry.pid)
    return started is not None and entry.started in ("", started)


def start_of(pid: int) -> str | None:
    """Return the boot ID and start time in clock ticks of process `pid`; None if it does not exist or is a zombie.

    This tells apart two processes that had the same pid.
    """
    proc = Path("/proc")
    try:
        state, *fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return None
    return None if state in "ZX" else f"{boot} {fields[18]}"
