"""trace: what learners side by side do when, as a timeline to look at."""

from collections.abc import Iterator
from pathlib import Path

import torch

from expgen.errors import FailedStorage
from expgen.runs.config import TrainConfig
from expgen.runs.plan import build_learner, first_plans
from expgen.training.learner import Phase
from expgen.training.pipeline import OwnPermits, Turn, run_side_by_side
from expgen.training.resources import plan_resources


def trace(config: TrainConfig, count: int, device: str, path: Path) -> None:
    """A timeline of `count` learners, one rollout and update each, as Chrome's tracing page and Perfetto read it.

    On the host each stretch is named by the learner and what it went on to do; on a GPU every kernel is beside it.
    """
    resources = plan_resources(device, count)
    learners = [build_learner(config, plan, resources) for plan in first_plans(config, count)]

    def side_by_side() -> None:
        turns = [Turn(learner.name, _named(learner.name, learner.iterate())) for learner in learners]
        for error in run_side_by_side(turns, OwnPermits(resources.updates_at_once)).values():
            raise error

    try:
        side_by_side()  # warms up
        with torch.profiler.profile() as profile:  # of the CPU, and of a GPU where there is one
            side_by_side()
    finally:
        for learner in learners:
            learner.close()
    profile.export_chrome_trace(str(path))
    if not path.is_file():  # the profiler prints why, and raises nothing
        raise FailedStorage(f"cannot write {path}; accepted: a writable folder with space")


def _named(name: str, life: Iterator[Phase]) -> Iterator[Phase]:
    """The same life, each turn of it a named stretch of the profiler's timeline."""
    phase: Phase | None = Phase.COLLECT
    while phase is not None:
        with torch.profiler.record_function(f"{name}: {phase.value}"):
            phase = next(life, None)
        if phase is not None:
            yield phase
