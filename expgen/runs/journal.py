"""journal.json: who worked on a run, when, how long, at which commit and how it ended. One entry for each process.

The last entry is the run's owner. `RunLock` writes the journal; `expgen status`, `--resume` and `reproduce` read it.
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

    owner: str  # a random name of this entry
    host: str
    pid: int
    started: str  # when the process started, as `start_of` says it; empty if unknown
    work: Work
    session: Session
    state: State
    message: str = ""  # why it failed or what diverged


def read_journal(folder: RunFolder) -> list[Entry]:
    """The entries of a run, oldest first; none if there is no journal or it is damaged."""
    try:
        return [_entry(data) for data in read_json(folder.journal_file)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def write_journal(folder: RunFolder, entries: Iterable[Entry]) -> None:
    """Replace the journal of a run."""
    lines = ",\n  ".join(json.dumps({**asdict(entry), "session": entry.session._asdict()}) for entry in entries)
    write_atomic(folder.journal_file, f"[\n  {lines}\n]\n".encode(), new_folders=0)


def is_damaged(folder: RunFolder) -> bool:
    """Whether there is a journal that cannot be read."""
    return folder.journal_file.exists() and not read_journal(folder)


def _entry(data: dict[str, Any]) -> Entry:
    """ValueError, KeyError or TypeError if it is not an entry."""
    told = data["session"]
    session = Session(float(told["began"]), float(told["seconds"]), str(told["commit"]))
    is_known = data["state"] in get_args(State) and data["work"] in get_args(Work)
    if not is_known or not all(0 <= time < LAST_TIME for time in session[:2]):
        raise ValueError("not what RunLock writes")
    process = str(data["host"]), int(data["pid"]), str(data["started"])
    return Entry(str(data["owner"]), *process, data["work"], session, data["state"], str(data.get("message", "")))


def is_alive(entry: Entry) -> bool | None:
    """Whether the process of `entry` still exists; None if it is on another machine, which cannot be asked."""
    if entry.host != socket.gethostname():
        return None
    started = start_of(entry.pid)
    return started is not None and entry.started in ("", started)


def start_of(pid: int) -> str | None:
    """When the process `pid` of this machine started: boot and clock ticks since; None if there is none, or a zombie.

    Two processes of one number differ in it.
    """
    proc = Path("/proc")
    try:
        state, *fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except OSError:
        return None
    return None if state in "ZX" else f"{boot} {fields[18]}"
