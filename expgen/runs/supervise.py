"""Workers: the worker processes of one command, and what becomes of those that die.

A worker that dies takes nobody along: it is started again from its learners' checkpoints; where that does not help,
each of them gets a process of its own, and only the one that dies again is given up.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait

from expgen.fast.processes import EXIT_SECONDS, Work, Worker
from expgen.runs.messages import LearnerId

DEATHS = 3  # of a worker in a row, without progress, after which it is given up
POLL_SECONDS = 0.2  # between two looks at whether to stop

Learners = list[LearnerId] | None  # that a worker still trains; None: it scores


@dataclass
class Job:
    """What a worker process was started for, and how often it has died since it last got on."""

    name: str
    learners: Learners
    worker: Worker
    progress: object  # what it had come to when it was started
    deaths: int
    has_built: bool


class Workers:
    """Starts worker processes, hears them, and starts again what dies."""

    def __init__(
        self, work_of: Callable[[Learners], Work], progress_of: Callable[[Learners], object], variables: dict[str, str]
    ) -> None:
        """What a worker does, by what one sees that it gets on, and what its environment has besides."""
        self.work_of, self.progress_of, self.variables = work_of, progress_of, variables
        self.jobs: list[Job] = []
        self.leaving: list[Worker] = []  # done, and not waited for while others want answers

    @property
    def training(self) -> list[Job]:
        """Those that train."""
        return [job for job in self.jobs if job.learners is not None]

    def start(self, name: str, learners: Learners, deaths: int = 0) -> Job:
        """Start a worker that trains `learners` or, with None, scores."""
        worker = Worker(self.work_of(learners), self.variables)
        job = Job(name, learners, worker, self.progress_of(learners), deaths, has_built=learners is None)
        self.jobs.append(job)
        return job

    def messages(self) -> Iterator[tuple[Job, object]]:
        """What the workers say, for a moment; None of one that has died."""
        jobs = {job.worker.connection: job for job in self.jobs}
        for connection in wait(list(jobs), POLL_SECONDS):
            job = jobs[connection]  # type: ignore[index]
            yield job, job.worker.receive()

    def leave(self, job: Job) -> None:
        """The worker is done."""
        self.jobs.remove(job)
        self.leaving.append(job.worker)

    def drop(self, job: Job) -> None:
        """The worker has died, and that is that."""
        self.jobs.remove(job)
        job.worker.close()

    def restart(self, job: Job, why: str) -> Sequence[Job]:
        """The worker has died: start it again, or each of its learners by itself; none where that has not helped."""
        self.drop(job)
        deaths = job.deaths + 1 if job.progress == self.progress_of(job.learners) else 1
        if deaths < DEATHS:
            say(f"{job.name} died ({why}); it is started again")
            if not job.has_built:
                self.variables = {}  # what it died of may be MPS
            return [self.start(job.name, job.learners, deaths)]
        if job.learners is None or len(job.learners) == 1:
            return []
        say(f"{job.name} died {DEATHS} times ({why}); each of its learners gets a process of its own")
        return [self.start(f"the worker of {learner.name}", [learner], DEATHS - 1) for learner in job.learners]

    def close(self) -> None:
        """End all, whatever they are doing."""
        for job in self.jobs:
            job.worker.close()
        for worker in self.leaving:
            worker.close(EXIT_SECONDS)
        self.jobs, self.leaving = [], []


def say(line: str) -> None:
    """Tell whoever watches the command."""
    print(f"expgen: {line}", file=sys.stderr, flush=True)
