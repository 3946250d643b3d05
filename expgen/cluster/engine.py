"""Engine: where tasks run. `local` and `ray` differ in nothing else."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from expgen.cluster.task import Ended, Share, Task
from expgen.errors import InputError, check_choice
from expgen.training.life import Watcher

ENGINES = ("local", "ray")


class Engine(Protocol):
    """Runs tasks, each after those it waits for, and answers as they end; asked to stop, it ends early."""

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[Ended]: ...


class LocalEngine:
    """One after another, here: a run already fills this machine with learners side by side."""

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[Ended]:
        """In the order given, which puts what others wait for first."""
        for task in tasks:
            try:
                ended = Ended(task, task.call(watcher))
            except Exception as error:  # whatever it is, it is this task's own
                ended = Ended(task, error=error)
            yield ended
            if watcher.should_stop():
                return


def make_engine(name: str, address: str | None = None, share: Share | None = None) -> Engine:
    """The engine of that name; `address` and `share` are for a cluster."""
    if check_choice("--engine", name, ENGINES) == "ray":
        from expgen.cluster.ray_engine import RayEngine

        return RayEngine(address, share or Share())
    if address is not None or share not in (None, Share()):
        raise InputError("--address, --cpus-per-job and --gpus-per-job place work on a cluster; accepted: --engine ray")
    return LocalEngine()
