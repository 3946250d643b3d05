"""Workers: the worker processes of one command, restarted when they die.

A worker that dies is restarted from its learners' checkpoints. After MAX_DEATHS deaths without progress each of its
learners gets a process of its own, and a learner whose own process dies again is given up.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait

from expgen.fast.processes import EXIT_SECONDS, Work, Worker
from expgen.runs.messages import LearnerId
from expgen.text import notify

MAX_DEATHS = 3  # deaths of a worker in a row, without progress, before it is given up
POLL_SECONDS = 0.2  # longest wait for a message, so that a stop request is noticed

Learners = list[LearnerId] | None  # the unfinished learners of a training worker; None for the scoring worker


@dataclass
class Assignment:
    """A worker process, its learners, and its deaths since it last made progress."""

    name: str
    learners: Learners
    process: Worker
    progress: object  # value of `progress_of` when the worker was started
    deaths: int
    has_built: bool


class Workers:
    """Starts worker processes, receives their messages and restarts those that die."""

    def __init__(
        self, work_of: Callable[[Learners], Work], progress_of: Callable[[Learners], object], variables: dict[str, str]
    ) -> None:
        self.work_of = work_of  # returns the function that a worker runs
        self.progress_of = progress_of  # returns a value that changes whenever the worker makes progress
        self.variables = variables  # environment variables to add in worker processes
        self.active: list[Assignment] = []
        self.finished: list[Worker] = []  # waited for in `close`, so that active workers get their answers first

    @property
    def training(self) -> list[Assignment]:
        """The active training workers."""
        return [assigned for assigned in self.active if assigned.learners is not None]

    def start(self, name: str, learners: Learners, deaths: int = 0) -> Assignment:
        """Start a worker that trains `learners`, or the scoring worker for None."""
        process = Worker(self.work_of(learners), self.variables)
        assigned = Assignment(name, learners, process, self.progress_of(learners), deaths, has_built=learners is None)
        self.active.append(assigned)
        return assigned

    def messages(self) -> Iterator[tuple[Assignment, object]]:
        """Wait up to POLL_SECONDS and yield one message of each worker that sent any; None if the worker died."""
        by_connection = {assigned.process.connection: assigned for assigned in self.active}
        for connection in wait(list(by_connection), POLL_SECONDS):
            assigned = by_connection[connection]  # type: ignore[index]
            yield assigned, assigned.process.receive()

    def finish(self, assigned: Assignment) -> None:
        """Remove a worker that is done, without waiting for its exit."""
        self.active.remove(assigned)
        self.finished.append(assigned.process)

    def remove(self, assigned: Assignment) -> None:
        """Remove a worker that died."""
        self.active.remove(assigned)
        assigned.process.close()

    def restart(self, assigned: Assignment, why: str) -> Sequence[Assignment]:
        """Restart a worker that died, or split it into one worker per learner; return none if it is given up."""
        self.remove(assigned)
        deaths = assigned.deaths + 1 if assigned.progress == self.progress_of(assigned.learners) else 1
        if deaths < MAX_DEATHS:
            log(f"{assigned.name} died ({why}); restarting it")
            if not assigned.has_built:
                self.variables = {}  # MPS may be the cause of death
            return [self.start(assigned.name, assigned.learners, deaths)]
        if assigned.learners is None or len(assigned.learners) == 1:
            return []
        log(f"{assigned.name} died {MAX_DEATHS} times ({why}); restarting each of its learners in a separate process")
        return [self.start(f"the worker of {learner.name}", [learner], MAX_DEATHS - 1) for learner in assigned.learners]

    def close(self) -> None:
        """Kill the active workers and wait for the finished ones."""
        for assigned in self.active:
            assigned.process.close()
        for worker in self.finished:
            worker.close(EXIT_SECONDS)
        self.active, self.finished = [], []


def log(line: str) -> None:
    """Print a line to standard error."""
    notify(f"expgen: {line}")
