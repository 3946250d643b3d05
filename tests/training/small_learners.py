"""Learners that live for a fraction of a second."""

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

TINY_PROCGEN = {"env": "procgen:bigfish", "envs": 4, "minibatches": 2}  # random fish do not live long
CPU = Resources(torch.device("cpu"), torch_threads=1, env_threads=1, updates_at_once=1)


def on_procgen(test: Any) -> Any:
    """Marks a test that needs the library."""
    is_missing = pytest.mark.skipif(not is_installed(), reason="no ProcGen library")
    return pytest.mark.procgen(is_missing(test))


def small_learner(small: Any, updates: int = 4, **changes: Any) -> Learner:
    settings = {name: value for name, value in small.settings.items() if name != "device"}
    config = make_config(**{**settings, "steps": updates * small.update_steps, **changes})
    return build_learner(config, plans_of(config)[0], CPU)


def live(learner: Learner, folder: Path, stop_after: int | None = None) -> list[dict[str, float]]:
    """Let it run, to its end or for so many updates; the rows it reports."""
    rows: list[dict[str, float]] = []

    def score(learner: Learner) -> Any:
        yield
        return {"test_return" if weights == "live" else "average_test_return": 1.0 for weights in learner.policies()}

    for _ in train_learner(learner, score, lambda name, row: rows.append(row), folder, lambda: len(rows) == stop_after):
        pass
    return rows
