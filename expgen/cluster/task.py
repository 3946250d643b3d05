"""Task: one device's worth of learners, as work that any machine can be handed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
