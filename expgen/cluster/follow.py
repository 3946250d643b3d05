"""RunFollower: progress of runs on other machines, read from their run folders."""

import contextlib
from collections.abc import Iterable

from expgen.cluster.engine import Task
from expgen.errors import FailedStorage, InputError
from expgen.runs.folder import RunFolder
from expgen.runs.plan import plans_of
from expgen.storage.view import local_copy
from expgen.training.loop import Watcher
from expgen.training.metrics import MetricsFile

VIEW_SECONDS = 10.0  # time limit of a request to the storage, and age up to which a download is used again


class RunFollower:
    """Reports many runs to a watcher as one run with learners named `RUN/LEARNER`."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.totals: dict[str, int] = {}  # steps to train, by task
        self.done: dict[str, int] = {}  # steps done, by task and learner
        self.envs: dict[str, int] = {}  # number of environments, by task and learner
        self.has_changed = False  # tasks were added or removed since on_start was called

    def poll(self, tasks: Iterable[Task]) -> None:
        """Read the run folders of `tasks` once and report new rows."""
        rows: dict[str, dict[str, float]] = {}
        for task in tasks:
            try:
                folder = self._folder(task)
                if folder is None or not folder.metrics_file.exists():
                    continue
                if task.name not in self.totals:
                    plans = plans_of(folder.read_config()[0])
                    self.totals[task.name] = sum(plan.steps for plan in plans)
                    self.envs |= {f"{task.name}/{plan.name}": plan.envs for plan in plans}
                    self.has_changed = True
                latest = MetricsFile(folder.metrics_file).latest()
            except FailedStorage:
                break  # the other runs would time out too
            except (InputError, OSError):
                continue  # the run is being written; read it at the next poll
            rows |= {f"{task.name}/{learner}": row for learner, row in latest.items()}
        if self.has_changed and self.totals:
            self.has_changed = False
            for name, row in rows.items():
                self.done.setdefault(name, int(row["env_steps"]))
            self.watcher.on_start(sum(self.totals.values()), dict(self.done))
        for name, row in rows.items():
            if self.done.get(name) != int(row["env_steps"]):
                self.done[name] = int(row["env_steps"])
                self.watcher.on_row(name, {**row, "envs": self.envs.get(name, 0)})

    def checkpoints(self, task: Task) -> tuple[str, ...]:
        """Return the names of the checkpoints of a task's run."""
        with contextlib.suppress(InputError):
            if folder := self._folder(task):
                return tuple(sorted(path.name for path in folder.path.glob("checkpoints/*/*.safetensors")))
        return ()

    def _folder(self, task: Task) -> RunFolder | None:
        if not task.run:
            return None
        return RunFolder(local_copy(task.run, without_weights=True, max_age=VIEW_SECONDS, seconds=VIEW_SECONDS))

    def forget(self, task: Task) -> None:
        """Stop counting `task`, which has ended."""
        self.has_changed = True
        self.totals.pop(task.name, None)
        self.done = {name: steps for name, steps in self.done.items() if not name.startswith(f"{task.name}/")}
