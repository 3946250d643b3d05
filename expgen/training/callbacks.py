"""Callback: methods that a run calls as it trains. TensorBoard, W&B, MLflow and user callbacks get the same calls."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from expgen.errors import InputError

SCORES = ("train_", "test_", "average_")  # prefixes of the score columns of metrics.csv


class Callback:
    """Base class whose methods do nothing; override the ones you need.

    Callbacks run in the process that writes the run folder, and training waits for them, so they should be fast. An
    exception in a callback ends the run. `learner` is `member0`, `member1`, …, `explorer`.
    """

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """The run in `folder` starts or resumes; `settings` is its complete config, keyed by flag name."""

    def on_learner(self, learner: str, env_steps: int) -> None:
        """`learner` starts or resumes at `env_steps`; anything logged for it beyond that step is obsolete."""

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        """A rollout and its update are done; `row` is the row of metrics.csv without scores."""

    def on_score(self, learner: str, env_steps: int, scores: Mapping[str, float]) -> None:
        """`learner` was scored at `env_steps`, for example `test_return`; it may have trained further since."""

    def on_checkpoint(self, learner: str, env_steps: int, file: Path) -> None:
        """A checkpoint of `learner` was written to `file`; only the newest two are kept."""

    def on_end(self, state: str) -> None:
        """The run ended as `done`, `stopped`, `diverged` or `failed`; this is the last call."""


def check_callbacks(callbacks: Any) -> None:
    """Raise InputError unless `callbacks` is a collection of objects with all methods of Callback."""
    if isinstance(callbacks, (str, Iterator)) or not isinstance(callbacks, Iterable):
        raise InputError(f"callbacks is {callbacks!r:.60}; accepted: a list of expgen.Callback objects")
    names = [name for name in vars(Callback) if name.startswith("on_")]
    for callback in callbacks:
        missing = [name for name in names if not callable(getattr(callback, name, None))]
        if missing or isinstance(callback, type):
            problem = "is a class" if isinstance(callback, type) else f"has no {missing[0]}"
            raise InputError(f"callback {callback!r:.60} {problem}; accepted: an expgen.Callback object")


class Callbacks(Callback):
    """Calls several callbacks in order."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks, self.has_ended = list(callbacks), False

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        for callback in self.callbacks:
            callback.on_start(folder, settings)

    def on_learner(self, learner: str, env_steps: int) -> None:
        for callback in self.callbacks:
            callback.on_learner(learner, env_steps)

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        """Call `on_update` with the row without scores, then `on_score` if the row has scores."""
        scores = {name: value for name, value in row.items() if name.startswith(SCORES)}
        without_scores = {name: value for name, value in row.items() if name not in scores}
        for callback in self.callbacks:
            callback.on_update(learner, without_scores)
        if scores:
            self.on_score(learner, int(row["env_steps"]), scores)

    def on_score(self, learner: str, env_steps: int, scores: Mapping[str, float]) -> None:
        for callback in self.callbacks:
            callback.on_score(learner, env_steps, scores)

    def on_checkpoint(self, learner: str, env_steps: int, file: Path) -> None:
        for callback in self.callbacks:
            callback.on_checkpoint(learner, env_steps, file)

    def on_end(self, state: str) -> None:
        """Call `on_end` once; later calls, made by cleanup code, are ignored."""
        if self.has_ended:
            return
        self.has_ended = True
        for callback in self.callbacks:
            callback.on_end(state)
