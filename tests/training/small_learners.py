"""Learners that train for a fraction of a second."""

from pathlib import Path
from typing import Any

import pytest
import torch

from expgen.envs.library import is_installed
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.learner import Learner
from expgen.training.loop import train_learner
from expgen.training.resources import Resources

TINY_PROCGEN = {"env": "procgen:bigfish", "envs": 4, "minibatches": 2}  # episodes of random actions are short
CPU = Resources(torch.device("cpu"), torch_threads=1, env_threads=1, updates_at_once=1)


def on_procgen(test: Any) -> Any:
    """Mark a test that needs the ProcGen library."""
    is_missing = pytest.mark.skipif(not is_installed(), reason="no ProcGen library")
    return pytest.mark.procgen(is_missing(test))


def small_learner(small: Any, updates: int = 4, resources: Resources = CPU, **changes: Any) -> Learner:
    settings = {name: value for name, value in small.settings.items() if name != "device"}
    config = make_config(**{**settings, "steps": updates * small.update_steps, **changes})
    return build_learner(config, plans_of(config)[0], resources)


def run_learner(learner: Learner, folder: Path, stop_after: int | None = None) -> list[dict[str, float]]:
    """Train to the end of the schedule, or for `stop_after` updates; return the rows of metrics."""
    rows: list[dict[str, float]] = []

    def score(learner: Learner) -> Any:
        yield
        return {"test_return" if weights == "live" else "average_test_return": 1.0 for weights in learner.policies()}

    for _ in train_learner(learner, score, lambda name, row: rows.append(row), folder, lambda: len(rows) == stop_after):
        pass
    return rows
