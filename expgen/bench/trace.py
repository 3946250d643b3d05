"""trace: a timeline of several learners in one pipeline."""

from collections.abc import Iterator
from pathlib import Path

import torch

from expgen.bench.bench import open_learners, run_learners
from expgen.errors import FailedStorage
from expgen.runs.config import TrainConfig
from expgen.training.learner import Learner, Phase
from expgen.training.resources import plan_resources


def trace(config: TrainConfig, count: int, device: str, path: Path) -> None:
    """Write a timeline of one rollout and update of `count` learners to `path`, for Perfetto or Chrome's tracing page.

    On the host each span is named by learner and phase; on a GPU every kernel is included.
    """
    resources = plan_resources(device, count)
    with open_learners(config, count, resources) as learners:
        run_learners(learners, _train_in_spans, resources)  # warm-up
        with torch.profiler.profile() as profile:  # CPU, and GPU if there is one
            run_learners(learners, _train_in_spans, resources)
    profile.export_chrome_trace(str(path))
    if not path.is_file():  # the profiler prints the reason but raises nothing
        raise FailedStorage(f"cannot write {path}; accepted: a writable folder with space")


def _train_in_spans(learner: Learner) -> Iterator[Phase]:
    """Run one rollout and update, with a named span of the profiler for each resumption."""
    iteration = learner.iterate()
    phase: Phase | None = Phase.COLLECT
    while phase is not None:
        with torch.profiler.record_function(f"{learner.name}: {phase.value}"):
            phase = next(iteration, None)
        if phase is not None:
            yield phase
