"""Helpers to watch child processes."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 300.0  # seconds


def is_running(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    return _stat(pid)[:1] not in ([], ["Z"])


def children_of(pid: int) -> list[int]:
    """Return its worker processes in the order of their start."""
    children = [int(word) for task in Path(f"/proc/{pid}/task").glob("*/children") for word in _text(task).split()]
    workers = [child for child in children if "expgen.fast.processes" in _text(Path(f"/proc/{child}/cmdline"))]
    return sorted(workers, key=lambda worker: [int(ticks) for ticks in _stat(worker)[19:20]])  # of its start


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on (the 20th is the start); nothing if it has ended."""
    return _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()


def _text(file: Path) -> str:
    """Return the content of a file in /proc; nothing if its process or thread has ended."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def until(is_true: Callable[[], bool]) -> None:
    """Wait until a condition holds, at most PATIENCE seconds."""
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
