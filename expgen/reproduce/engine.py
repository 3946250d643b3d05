"""Engine: where jobs run. Another one (a cluster's) differs from `local` in nothing else."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from expgen.reproduce.job import Job, JobResult

Work = Callable[[Job], JobResult]  # picklable


class Engine(Protocol):
    """Runs jobs, those a job adopts before it, and answers as they end."""

    def run(self, jobs: Sequence[Job], work: Work) -> Iterator[JobResult]: ...


class LocalEngine:
    """One after another, here: a run already fills this machine with learners side by side."""

    def run(self, jobs: Sequence[Job], work: Work) -> Iterator[JobResult]:
        """In the order given, which puts what is adopted first; a stop ends the list."""
        for job in jobs:
            result = work(job)
            yield result
            if result.status == "stopped":
                return


ENGINES: dict[str, Callable[[], Engine]] = {"local": LocalEngine}
