"""Helpers to watch child processes."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 60.0  # seconds


def is_running(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of(pid: int) -> list[int]:
    """Return its worker processes in the order of their start."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = sorted(int(word) for task in tasks for word in task.read_text().split())
    return [child for child in children if "expgen.fast.processes" in _command(child)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def until(is_true: Callable[[], bool]) -> None:
    """Wait until a condition holds, at most PATIENCE seconds."""
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
