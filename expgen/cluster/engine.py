"""Engine: runs tasks on this machine or on a Ray cluster. One task trains the learners of one device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from expgen.errors import InputError, check_choice
from expgen.storage.location import Location
from expgen.training.loop import Watcher

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Task:
    """Work for an engine. `call` may be killed at any time and called again: it resumes from what it has stored."""

    name: str
    call: Callable[[Watcher], Any]  # picklable, and so is its return value
    after: tuple[str, ...] = ()  # names of tasks that must end first
    run: Location | None = None  # the run folder that shows its progress


@dataclass(frozen=True)
class TaskResult:
    """The return value or the error of a task."""

    task: Task
    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        """Return the value or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


class Engine(Protocol):
    """Runs each task after those it depends on and yields results as tasks end; ends early if asked to stop."""

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[TaskResult]: ...


class LocalEngine:
    """Runs tasks one after another in this process: one run already uses the whole machine."""

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> Iterator[TaskResult]:
        """Run `tasks` in the given order, in which dependencies come first."""
        for task in tasks:
            try:
                result = TaskResult(task, task.call(watcher))
            except Exception as error:  # any error of a task is its result
                result = TaskResult(task, error=error)
            yield result
            if watcher.should_stop():
                return


@dataclass(frozen=True)
class TaskResources:
    """CPUs and GPUs that one task reserves, also fractions; None: one GPU and its share of a node's cores."""

    cpus: float | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        for flag, value in (("--cpus-per-job", self.cpus), ("--gpus-per-job", self.gpus)):
            if value is not None and not 0 <= value < float("inf"):
                raise InputError(f"{flag} is {value}; accepted: 0 or more")

    def on(self, nodes: Sequence[Mapping[str, float]]) -> "TaskResources":
        """Return both numbers for a cluster of `nodes`, given as resources by name.

        The default is one GPU and its share of the node's cores, or all cores of a node if no node has a GPU. Raises
        InputError if no node is large enough, since the task would wait forever.
        """
        max_gpus = max((node.get("GPU", 0) for node in nodes), default=0)
        gpus = self.gpus if self.gpus is not None else min(1.0, max_gpus)
        candidates = [node for node in nodes if node.get("GPU", 0) >= gpus]
        cores = [node.get("CPU", 0) * (gpus / node["GPU"] if gpus else 1) for node in candidates]
        default = min((float(int(part)) if part >= 1 else part for part in cores if part), default=0.0)
        cpus = default if self.cpus is None else self.cpus
        max_cpus = max((node.get("CPU", 0) for node in candidates), default=0)
        for flag, asked, limit in (("--gpus-per-job", gpus, max_gpus), ("--cpus-per-job", cpus, max_cpus)):
            if asked > limit:
                raise InputError(f"{flag} is {asked:g}; accepted: what some node has, or fewer")
        return TaskResources(cpus, gpus)

    @property
    def threads(self) -> int:
        """Number of threads that the CPUs allow."""
        return max(1, int(self.cpus or 1))


def make_engine(name: str, address: str | None = None, resources: TaskResources | None = None) -> Engine:
    """Return the engine `name`; `address` and `resources` are for a cluster."""
    if check_choice("--engine", name, ENGINES) == "ray":
        from expgen.cluster.ray_engine import RayEngine

        return RayEngine(address, resources or TaskResources())
    if address is not None or resources not in (None, TaskResources()):
        raise InputError("--address, --cpus-per-job and --gpus-per-job place work on a cluster; accepted: --engine ray")
    return LocalEngine()
