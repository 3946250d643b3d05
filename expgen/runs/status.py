"""What has become of runs and how long they still take, from their folders alone."""

import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from expgen.errors import InputError
from expgen.runs.adopt import plans_in
from expgen.runs.folder import RunFolder
from expgen.runs.sitting import read_sitting
from expgen.storage.location import Location, is_url, join
from expgen.storage.view import View, snapshots_below
from expgen.training.metrics import MetricsFile

SILENT_SECONDS = 600.0  # without a row of metrics, a run on another machine may be dead

RunState = Literal["running", "silent", "dead", "done", "stopped", "diverged", "failed"]


@dataclass(frozen=True)
class RunStatus:
    """One run. `seconds_left` is None where nothing tells."""

    path: Path
    state: RunState
    steps: int
    total_steps: int
    seconds_left: float | None
    message: str = ""


def run_status(path: Path) -> RunStatus:
    """The state of the run in `path`: what its last sitting says, and whether that sitting lives."""
    folder = RunFolder(path)
    sitting = read_sitting(folder)
    if not folder.exists():  # it has begun but was not yet built, or could not be
        return RunStatus(path, _state_of(folder, sitting), 0, 0, None, str(sitting.get("message", "")))
    config, _ = folder.read_config()
    latest = MetricsFile(folder.metrics_file).latest()
    steps, total, left = 0, 0, 0.0
    is_known = True
    for plan in plans_in(folder, config):
        done = max(int(latest.get(plan.name, {}).get("env_steps", 0)), _stored_steps(folder, plan.name))
        seconds = latest.get(plan.name, {}).get("seconds", 0.0)
        steps, total = steps + min(done, plan.steps), total + plan.steps
        if done < plan.steps:
            is_known = is_known and done > 0 and seconds > 0
            left = max(left, (plan.steps - done) * seconds / done) if done else left  # side by side: the slowest counts
    state = _state_of(folder, sitting)
    is_ahead = state in ("running", "silent", "dead", "stopped") and is_known
    return RunStatus(path, state, steps, total, left if is_ahead else None, str(sitting.get("message", "")))


def _stored_steps(folder: RunFolder, learner: str) -> int:
    names = (path.stem for path in folder.checkpoints_of(learner).glob("*.safetensors"))
    return max((int(name) for name in names if name.isdigit()), default=0)


def _state_of(folder: RunFolder, sitting: dict[str, Any]) -> RunState:
    state = sitting.get("state")
    if state in ("done", "stopped", "diverged", "failed"):
        return state
    if state != "running":
        return "stopped"  # a run from before sittings were noted
    if sitting.get("host") == socket.gethostname():
        return "running" if _is_process(sitting.get("pid")) else "dead"
    files = (folder.metrics_file, folder.sitting_file)
    quiet = time.time() - max(file.stat().st_mtime for file in files if file.exists())
    return "silent" if quiet > SILENT_SECONDS else "running"


def _is_process(pid: object) -> bool:
    return isinstance(pid, int) and pid > 0 and os.path.exists(f"/proc/{pid}")


def runs_below(place: Location) -> Iterator[Path]:
    """`place` itself where it is a run folder, else the run folders in it and in its `runs`; of a URL, what tells."""
    if is_url(place):
        yield from _runs_at(str(place))
        return
    path = Path(place)
    if _is_run(path):
        yield path
        return
    if not path.is_dir():
        raise InputError(f"RUNS is {str(path)!r}; accepted: run folders, or folders that hold some")
    inside = (path / "runs") if (path / "runs").is_dir() else path
    yield from sorted(child for child in inside.iterdir() if _is_run(child))


def _runs_at(url: str) -> Iterator[Path]:
    for inside in (join(url, "runs"), url):
        if names := [name for name in snapshots_below(str(inside)) if name and "/" not in name]:
            yield from (View(join(inside, name)).refresh() for name in names)
            return
    folder = View(url).refresh()
    if _is_run(folder):
        yield folder
    elif not folder.exists():
        raise InputError(f"RUNS is {url!r}; accepted: where expgen keeps runs")


def _is_run(path: Path) -> bool:
    folder = RunFolder(path)
    return folder.exists() or folder.sitting_file.exists()
