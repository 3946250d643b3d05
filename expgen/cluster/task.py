"""Task: one device's worth of learners, as work that any machine can be handed, and its share of a node."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from expgen.errors import InputError
from expgen.storage.location import Location
from expgen.training.life import Watcher


@dataclass(frozen=True)
class Task:
    """`call` may be cut short anywhere and called again: it goes on from what its earlier self has stored."""

    name: str
    call: Callable[[Watcher], Any]  # picklable, and so is its answer
    after: tuple[str, ...] = ()  # tasks that end before this one begins
    run: Location | None = None  # where one can see how far it is


@dataclass(frozen=True)
class Ended:
    """What became of a task: an answer or an error."""

    task: Task
    answer: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        """The answer; raises the error."""
        if self.error is not None:
            raise self.error
        return self.answer


@dataclass(frozen=True)
class Share:
    """CPUs and GPUs of one task, fractions included; None: one device's worth of the nodes there are."""

    cpus: float | None = None
    gpus: float | None = None

    def __post_init__(self) -> None:
        for flag, value in (("--cpus-per-job", self.cpus), ("--gpus-per-job", self.gpus)):
            if value is not None and not 0 <= value < float("inf"):
                raise InputError(f"{flag} is {value}; accepted: 0 or more")

    def on(self, nodes: Sequence[Mapping[str, float]]) -> "Share":
        """Both numbers, for nodes with these resources.

        A device's worth is a GPU and its part of the node's cores, or where no node has a GPU a whole node's cores, as
        on one machine. What no node can hold is refused, for it would wait for ever.
        """
        with_gpu = [node for node in nodes if node.get("GPU", 0) > 0]
        gpus = self.gpus if self.gpus is not None else float(bool(with_gpu))
        if gpus > max((node.get("GPU", 0) for node in nodes), default=0):
            raise InputError(f"--gpus-per-job is {gpus:g}; accepted: what some node has, or fewer")
        able = [node for node in nodes if node.get("GPU", 0) >= gpus]
        if self.cpus is None:
            fair = min((cores for node in able if (cores := _cores_beside(node, gpus)) > 0), default=0.0)
            return replace(self, cpus=fair, gpus=gpus)
        if self.cpus > max((node.get("CPU", 0) for node in able), default=0):
            raise InputError(f"--cpus-per-job is {self.cpus:g}; accepted: what some node has, or fewer")
        return replace(self, gpus=gpus)

    @property
    def cores(self) -> int:
        """Whole ones, for threads."""
        return max(1, int(self.cpus or 1))


def _cores_beside(node: Mapping[str, float], gpus: float) -> float:
    cores = node.get("CPU", 0)
    if gpus == 0:
        return cores
    part = cores * gpus / node["GPU"]
    return float(int(part)) if part >= 1 else part
