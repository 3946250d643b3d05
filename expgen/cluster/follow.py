"""Follower: progress of runs elsewhere, read from their folders."""

from collections.abc import Iterable

from expgen.cluster.task import Task, Watcher
from expgen.errors import InputError
from expgen.experiments.adopt import plans_in
from expgen.experiments.run_folder import RunFolder
from expgen.training.metrics import MetricsFile


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
            if task.run is None or not RunFolder(task.run).metrics_file.exists():
                continue
            try:
                if task.name not in self.totals:
                    folder = RunFolder(task.run)
                    self.totals[task.name] = sum(plan.steps for plan in plans_in(folder, folder.read_config()[0]))
                    self.has_changed = True
                latest = MetricsFile(RunFolder(task.run).metrics_file).latest()
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

    def forget(self, task: Task) -> None:
        """`task` has ended: it counts no longer."""
        self.has_changed = True
        self.totals.pop(task.name, None)
        self.done = {name: steps for name, steps in self.done.items() if not name.startswith(f"{task.name}/")}
