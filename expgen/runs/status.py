"""The state of runs and their remaining time, from journals and metrics."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from expgen.errors import InputError
from expgen.runs.folder import RunFolder
from expgen.runs.journal import Entry, is_alive, read_journal
from expgen.runs.plan import plans_of
from expgen.storage.location import Location, is_url, join
from expgen.storage.view import local_copy, snapshots_below
from expgen.training.metrics import MetricsFile

SILENT_SECONDS = 600.0  # without a write, after which a run on another machine may be dead

RunState = Literal["running", "scoring", "silent", "dead", "done", "stopped", "diverged", "failed", "damaged"]


@dataclass(frozen=True)
class RunStatus:
    """The state of one run. `seconds_left` is None if unknown."""

    path: Path
    state: RunState
    steps: int
    total_steps: int
    seconds_left: float | None
    message: str = ""


def run_status(path: Path) -> RunStatus:
    """Return the state of the run in `path`, from the last journal entry and whether its process is alive."""
    folder = RunFolder(path)
    entry = next(reversed(read_journal(folder)), None)
    try:  # there is no config until the learners are built
        steps, total, left = _progress(folder) if folder.exists() else (0, 0, None)
    except (InputError, OSError) as error:
        return RunStatus(path, "damaged", 0, 0, None, " ".join(str(error).split()))
    state = _state_of(folder, entry)
    can_continue = state in ("running", "silent", "dead", "stopped")
    return RunStatus(path, state, steps, total, left if can_continue else None, entry.message if entry else "")


def _progress(folder: RunFolder) -> tuple[int, int, float | None]:
    """Return steps done, steps in all, and seconds left (None if unknown)."""
    config, _ = folder.read_config()
    latest = MetricsFile(folder.metrics_file).latest()
    steps, total, left = 0, 0, 0.0
    for plan in plans_of(config):
        row = latest.get(plan.name, {})
        done, seconds = int(row.get("env_steps", 0)), row.get("seconds", 0.0)
        done = max(done, newest_checkpoint_steps(folder, plan.name))
        steps, total = steps + min(done, plan.steps), total + plan.steps
        if done < plan.steps:
            is_known = done and seconds
            left = max(left, (plan.steps - done) * seconds / done if is_known else math.inf)  # of the slowest learner
    return steps, total, left if math.isfinite(left) else None


def newest_checkpoint_steps(folder: RunFolder, learner: str) -> int:
    """Return the steps of the newest checkpoint by its file name, without reading the file."""
    names = (path.stem for path in folder.checkpoints_of(learner).glob("*.safetensors"))
    return max((int(name) for name in names if name.isdigit()), default=0)


def _state_of(folder: RunFolder, entry: Entry | None) -> RunState:
    if entry is None:
        return "stopped"  # no journal, or a damaged one
    if entry.state != "running":
        return entry.state
    alive = is_alive(entry)
    if alive is False:
        return "dead"
    files = (folder.metrics_file, folder.journal_file)
    quiet = time.time() - max(file.stat().st_mtime for file in files if file.exists())
    if alive is None and quiet > SILENT_SECONDS:
        return "silent"
    return "scoring" if entry.work == "score" else "running"


def find_runs(where: Location) -> Iterator[Path]:
    """Yield `where` if it is a run folder, else those in it or in its `runs`; for a URL, copies without weights."""
    if is_url(where):
        yield from _runs_at(str(where))
        return
    path = Path(where)
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
            yield from (local_copy(join(inside, name), without_weights=True) for name in names)
            return
    folder = local_copy(url, without_weights=True)
    if _is_run(folder):
        yield folder
    elif not folder.exists():
        raise InputError(f"RUNS is {url!r}; accepted: a URL of a run or of a folder of runs")


def _is_run(path: Path) -> bool:
    folder = RunFolder(path)
    return folder.exists() or folder.journal_file.exists()
