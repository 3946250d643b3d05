"""Workers: which worker processes are restarted when they die, and which are given up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.runs import supervise
from expgen.runs.messages import LearnerId
from expgen.runs.supervise import MAX_DEATHS, Assignment, Learners, Workers

A, B = (LearnerId(Path("run"), name) for name in ("member0", "member1"))


class Process:
    """A worker that does nothing."""

    def __init__(self, work: Any, variables: dict[str, str]) -> None:
        self.work, self.variables, self.is_closed = work, variables, False

    def close(self, patience: float = 0.0) -> None:
        self.is_closed = True


@pytest.fixture
def steps() -> dict[LearnerId, int]:
    """Steps of each learner's checkpoint."""
    return {A: 0, B: 0}


@pytest.fixture
def workers(steps: dict[LearnerId, int], monkeypatch: pytest.MonkeyPatch) -> Workers:
    monkeypatch.setattr(supervise, "Worker", Process)
    progress: Callable[[Learners], object] = lambda learners: [steps[learner] for learner in learners or ()]  # noqa: E731
    return Workers(lambda learners: lambda connection: None, progress, {"CUDA_MPS": "1"})


def die(workers: Workers, worker: Assignment, times: int) -> list[Assignment]:
    """Let the worker die `times` times; return the workers that are restarted."""
    again = [worker]
    for _ in range(times):
        (worker,) = again
        again = list(workers.restart(worker, "killed by SIGKILL"))
    return again


def test_dead_worker_is_restarted_and_then_split_into_one_worker_per_learner(workers: Workers) -> None:
    first = workers.start("worker 0", [A, B])
    (again,) = die(workers, first, MAX_DEATHS - 1)
    assert first.process.is_closed and again.learners == [A, B] and workers.active == [again]  # type: ignore[attr-defined]
    alone = workers.restart(again, "killed by SIGKILL")
    assert [worker.learners for worker in alone] == [[A], [B]] == [worker.learners for worker in workers.active]
    assert workers.restart(alone[0], "killed by SIGKILL") == [] and workers.active == [alone[1]]


def test_new_checkpoint_resets_death_count(workers: Workers, steps: dict[LearnerId, int]) -> None:
    (worker,) = die(workers, workers.start("worker 0", [A]), MAX_DEATHS - 1)
    steps[A] = 128
    (worker,) = die(workers, worker, MAX_DEATHS - 1)
    assert worker.deaths == MAX_DEATHS - 1
    assert workers.restart(worker, "killed by SIGKILL") == []


def test_scoring_worker_is_given_up_after_too_many_deaths(workers: Workers) -> None:
    (worker,) = die(workers, workers.start("scoring worker", None), MAX_DEATHS - 1)
    assert workers.restart(worker, "exited with status 1") == [] and not workers.active and not workers.training


def test_worker_that_dies_while_building_is_restarted_without_mps(workers: Workers) -> None:
    built = workers.start("worker 0", [A])
    built.has_built = True
    (again,) = die(workers, built, 1)
    assert again.process.variables == {"CUDA_MPS": "1"}  # type: ignore[attr-defined]
    (again,) = die(workers, again, 1)
    assert again.process.variables == {}  # type: ignore[attr-defined]


def test_close_ends_active_and_finished_workers(workers: Workers) -> None:
    started = [workers.start("worker 0", [A]), workers.start("worker 1", [B])]
    workers.finish(started[0])
    assert workers.active == [started[1]]
    workers.close()
    assert all(worker.process.is_closed for worker in started) and not workers.active  # type: ignore[attr-defined]
