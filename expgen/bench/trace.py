"""trace: what learners side by side do when, as a timeline to look at."""

from collections.abc import Iterator
from pathlib import Path

import torch

from expgen.bench.bench import side_by_side
from expgen.errors import FailedStorage
from expgen.runs.config import TrainConfig
from expgen.training.learner import Learner, Phase
from expgen.training.resources import plan_resources


def trace(config: TrainConfig, count: int, device: str, path: Path) -> None:
    """A timeline of `count` learners, one rollout and update each, as Chrome's tracing page and Perfetto read it.

    On the host each stretch is named by the learner and what it went on to do; on a GPU every kernel is beside it.
    """
    resources = plan_resources(device, count)
    with side_by_side(config, count, resources) as run:
        run(_named)  # warms up
        with torch.profiler.profile() as profile:  # of the CPU, and of a GPU where there is one
            run(_named)
    profile.export_chrome_trace(str(path))
    if not path.is_file():  # the profiler prints why, and raises nothing
        raise FailedStorage(f"cannot write {path}; accepted: a writable folder with space")


def _named(learner: Learner) -> Iterator[Phase]:
    """One rollout and update, each turn of it a named stretch of the profiler's timeline."""
    life = learner.iterate()
    phase: Phase | None = Phase.COLLECT
    while phase is not None:
        with torch.profiler.record_function(f"{learner.name}: {phase.value}"):
            phase = next(life, None)
        if phase is not None:
            yield phase
