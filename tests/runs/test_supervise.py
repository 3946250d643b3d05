"""Workers: what is started again when a worker process dies, and when that is given up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.runs import supervise
from expgen.runs.messages import LearnerId
from expgen.runs.supervise import DEATHS, Job, Learners, Workers

A, B = (LearnerId(Path("run"), name) for name in ("member0", "member1"))


class Process:
    """A worker that does nothing."""

    def __init__(self, work: Any, variables: dict[str, str]) -> None:
        self.work, self.variables, self.is_closed = work, variables, False

    def close(self, patience: float = 0.0) -> None:
        self.is_closed = True


@pytest.fixture
def steps() -> dict[LearnerId, int]:
    """How far each learner's checkpoint is."""
    return {A: 0, B: 0}


@pytest.fixture
def workers(steps: dict[LearnerId, int], monkeypatch: pytest.MonkeyPatch) -> Workers:
    monkeypatch.setattr(supervise, "Worker", Process)
    progress: Callable[[Learners], object] = lambda learners: [steps[who] for who in learners or ()]  # noqa: E731
    return Workers(lambda learners: lambda connection: None, progress, {"CUDA_MPS": "1"})


def die(workers: Workers, job: Job, times: int) -> list[Job]:
    """What is started again, after so many deaths of the same work."""
    again = [job]
    for _ in range(times):
        (job,) = again
        again = list(workers.restart(job, "killed by SIGKILL"))
    return again


def test_a_worker_that_dies_is_started_again_and_then_each_of_its_learners_by_itself(workers: Workers) -> None:
    first = workers.start("worker 0", [A, B])
    (again,) = die(workers, first, DEATHS - 1)
    assert first.worker.is_closed and again.learners == [A, B] and workers.jobs == [again]  # type: ignore[attr-defined]
    alone = workers.restart(again, "killed by SIGKILL")
    assert [job.learners for job in alone] == [[A], [B]] == [job.learners for job in workers.jobs]
    assert workers.restart(alone[0], "killed by SIGKILL") == [] and workers.jobs == [alone[1]]


def test_deaths_count_from_the_last_checkpoint(workers: Workers, steps: dict[LearnerId, int]) -> None:
    (job,) = die(workers, workers.start("worker 0", [A]), DEATHS - 1)
    steps[A] = 128
    (job,) = die(workers, job, DEATHS - 1)
    assert job.deaths == DEATHS - 1
    assert workers.restart(job, "killed by SIGKILL") == []


def test_a_scoring_worker_is_given_up_too(workers: Workers) -> None:
    (job,) = die(workers, workers.start("scoring worker", None), DEATHS - 1)
    assert workers.restart(job, "exited with status 1") == [] and not workers.jobs and not workers.training


def test_a_worker_that_dies_while_it_builds_is_tried_without_mps(workers: Workers) -> None:
    built = workers.start("worker 0", [A])
    built.has_built = True
    (again,) = die(workers, built, 1)
    assert again.worker.variables == {"CUDA_MPS": "1"}  # type: ignore[attr-defined]
    (again,) = die(workers, again, 1)
    assert again.worker.variables == {}  # type: ignore[attr-defined]


def test_whoever_is_left_is_ended_with_the_command(workers: Workers) -> None:
    jobs = [workers.start("worker 0", [A]), workers.start("worker 1", [B])]
    workers.leave(jobs[0])
    assert workers.jobs == [jobs[1]]
    workers.close()
    assert all(job.worker.is_closed for job in jobs) and not workers.jobs  # type: ignore[attr-defined]
