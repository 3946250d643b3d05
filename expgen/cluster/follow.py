"""Follower: progress of runs elsewhere, read from their folders."""

import contextlib
from collections.abc import Iterable

from expgen.cluster.engine import Task
from expgen.errors import FailedStorage, InputError
from expgen.runs.folder import RunFolder
from expgen.runs.plan import plans_of
from expgen.storage.view import local_copy
from expgen.training.loop import Watcher
from expgen.training.metrics import MetricsFile

VIEW_SECONDS = 10.0  # that the driver waits for storage, to look at a run, and between two looks


class Follower:
    """Tells a watcher about many runs as if they were one, whose learners are `RUN/LEARNER`."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.totals: dict[str, int] = {}  # steps asked for, by task
        self.done: dict[str, int] = {}  # steps done, by task and learner
        self.has_changed = False  # which runs there are, since the watcher was told

    def poll(self, tasks: Iterable[Task]) -> None:
        """Look at the run folders of `tasks` once."""
        rows: dict[str, dict[str, float]] = {}
        for task in tasks:
            try:
                folder = self._folder(task)
                if folder is None or not folder.metrics_file.exists():
                    continue
                if task.name not in self.totals:
                    self.totals[task.name] = sum(plan.steps for plan in plans_of(folder.read_config()[0]))
                    self.has_changed = True
                latest = MetricsFile(folder.metrics_file).latest()
            except FailedStorage:
                break  # it would keep us waiting for the others too
            except (InputError, OSError):
                continue  # half way between two states; the next look will tell
            rows |= {f"{task.name}/{learner}": row for learner, row in latest.items()}
        if self.has_changed and self.totals:
            self.has_changed = False
            for name, row in rows.items():
                self.done.setdefault(name, int(row["env_steps"]))
            self.watcher.on_start(sum(self.totals.values()), dict(self.done))
        for name, row in rows.items():
            if self.done.get(name) != int(row["env_steps"]):
                self.done[name] = int(row["env_steps"])
                self.watcher.on_row(name, row)

    def stored(self, task: Task) -> tuple[str, ...]:
        """The checkpoints of a task's run, by which one sees that it gets on."""
        with contextlib.suppress(InputError):
            if folder := self._folder(task):
                return tuple(sorted(path.name for path in folder.path.glob("checkpoints/*/*.safetensors")))
        return ()

    def _folder(self, task: Task) -> RunFolder | None:
        where = task.run and local_copy(task.run, without_weights=True, max_age=VIEW_SECONDS, seconds=VIEW_SECONDS)
        return RunFolder(where) if where else None

    def forget(self, task: Task) -> None:
        """`task` has ended: it counts no longer."""
        self.has_changed = True
        self.totals.pop(task.name, None)
        self.done = {name: steps for name, steps in self.done.items() if not name.startswith(f"{task.name}/")}
