"""Engine: where tasks run, here or on a Ray cluster; each task is one device's worth of learners."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from expgen.errors import InputError, check_choice
from expgen.storage.location import Location
from expgen.training.loop import Watcher

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Task:
    """`call` may be cut short anywhere and called again: it goes on from what its earlier self has stored."""

    name: str
    call: Callable[[Watcher], Any]  # picklable, and so is its answer
    after: tuple[str, ...] = ()  # tasks that end before this one begins
    run: Location | None = None  # where one can see how far it is


@dataclass(frozen=True)
class TaskResult:
    """What became of a task: an answer or an error."""

    task: Task
    answer: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        """The answer; raises the error."""
        if self.error is not None:
            raise self.error
        return self.answer


class Engine(Protocol):
    """Runs tasks, each after those it waits for, and answers as they end; asked to stop, it ends early."""

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[TaskResult]: ...


class LocalEngine:
    """One after another, here: a run already fills this machine with learners side by side."""

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[TaskResult]:
        """In the order given, which puts what others wait for first."""
        for task in tasks:
            try:
                ended = TaskResult(task, task.call(watcher))
            except Exception as error:  # whatever it is, it is this task's own
                ended = TaskResult(task, error=error)
            yield ended
            if watcher.should_stop():
                return


@dataclass(frozen=True)
class TaskResources:
    """CPUs and GPUs of one task, fractions included; None: one device's worth of the nodes there are."""

    cpus: float | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        for flag, value in (("--cpus-per-job", self.cpus), ("--gpus-per-job", self.gpus)):
            if value is not None and not 0 <= value < float("inf"):
                raise InputError(f"{flag} is {value}; accepted: 0 or more")

    def on(self, nodes: Sequence[Mapping[str, float]]) -> "TaskResources":
        """Both numbers, for nodes with these resources.

        A device's worth is a GPU and its part of the node's cores, or where no node has a GPU a whole node's cores, as
        on one machine. What no node can hold is refused, for it would wait for ever.
        """
        most_gpus = max((node.get("GPU", 0) for node in nodes), default=0)
        gpus = self.gpus if self.gpus is not None else min(1.0, most_gpus)
        able = [node for node in nodes if node.get("GPU", 0) >= gpus]
        cores = [node.get("CPU", 0) * (gpus / node["GPU"] if gpus else 1) for node in able]  # beside so many GPUs
        fair = min((float(int(part)) if part >= 1 else part for part in cores if part), default=0.0)
        cpus = fair if self.cpus is None else self.cpus
        most_cpus = max((node.get("CPU", 0) for node in able), default=0)
        for flag, asked, most in (("--gpus-per-job", gpus, most_gpus), ("--cpus-per-job", cpus, most_cpus)):
            if asked > most:
                raise InputError(f"{flag} is {asked:g}; accepted: what some node has, or fewer")
        return TaskResources(cpus, gpus)

    @property
    def cores(self) -> int:
        """Whole ones, for threads."""
        return max(1, int(self.cpus or 1))


def make_engine(name: str, address: str | None = None, share: TaskResources | None = None) -> Engine:
    """The engine of that name; `address` and `share` are for a cluster."""
    if check_choice("--engine", name, ENGINES) == "ray":
        from expgen.cluster.ray_engine import RayEngine

        return RayEngine(address, share or TaskResources())
    if address is not None or share not in (None, TaskResources()):
        raise InputError("--address, --cpus-per-job and --gpus-per-job place work on a cluster; accepted: --engine ray")
    return LocalEngine()
