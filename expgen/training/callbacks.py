"""Callback: who hears of a run as it trains. TensorBoard, W&B, MLflow and your own are told the same."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from expgen.errors import InputError

SCORES = ("train_", "test_", "average_")  # how the columns of scores begin in a row of metrics


class Callback:
    """Override what you need; each method does nothing by itself.

    They are called one after another, in the process that writes the run folder, and training waits: be quick. An
    error that one raises ends the run. `learner` is `member0`, `member1`, …, `explorer`.
    """

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """The run in `folder` begins or goes on; `settings` are all of its config, by the names of their flags."""

    def on_learner(self, learner: str, env_steps: int) -> None:
        """`learner` trains on from `env_steps`; what was told of it beyond that no longer counts."""

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        """One rollout and its update: a row of metrics.csv without scores; `row["env_steps"]` says when."""

    def on_score(self, learner: str, env_steps: int, scores: Mapping[str, float]) -> None:
        """What `learner` got at `env_steps`, as `train_return` and `test_solved`; it may be further by now."""

    def on_checkpoint(self, learner: str, env_steps: int, file: Path) -> None:
        """A checkpoint of `learner` was written to `file`; the newest two are kept."""

    def on_end(self, state: str) -> None:
        """The run is `done`, `stopped`, `diverged` or `failed`; nothing is told after it."""


def check_callbacks(callbacks: Any) -> None:
    """InputError if one of them could not be told."""
    if isinstance(callbacks, (str, Iterator)) or not isinstance(callbacks, Iterable):
        raise InputError(f"callbacks is {callbacks!r:.60}; accepted: a list of objects of expgen.Callback's kind")
    names = [name for name in vars(Callback) if name.startswith("on_")]
    for callback in callbacks:
        lacks = [name for name in names if not callable(getattr(callback, name, None))]
        if lacks or isinstance(callback, type):
            what = "is a class" if isinstance(callback, type) else f"has no {lacks[0]}"
            raise InputError(f"callback {callback!r:.60} {what}; accepted: an object of expgen.Callback's kind")


class Callbacks(Callback):
    """Several, told in their order."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self.callbacks, self.has_ended = list(callbacks), False

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._tell(lambda callback: callback.on_start(folder, settings))

    def on_learner(self, learner: str, env_steps: int) -> None:
        self._tell(lambda callback: callback.on_learner(learner, env_steps))

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        """Scores that the row has already are told for themselves."""
        scores = {name: value for name, value in row.items() if name.startswith(SCORES)}
        alone = {name: value for name, value in row.items() if name not in scores}
        self._tell(lambda callback: callback.on_update(learner, alone))
        if scores:
            self.on_score(learner, int(row["env_steps"]), scores)

    def on_score(self, learner: str, env_steps: int, scores: Mapping[str, float]) -> None:
        self._tell(lambda callback: callback.on_score(learner, env_steps, scores))

    def on_checkpoint(self, learner: str, env_steps: int, file: Path) -> None:
        self._tell(lambda callback: callback.on_checkpoint(learner, env_steps, file))

    def on_end(self, state: str) -> None:
        """Only the first one counts, so that a run can be ended for certain on its way out."""
        if not self.has_ended:
            self.has_ended = True
            self._tell(lambda callback: callback.on_end(state))

    def _tell(self, tell: Callable[[Callback], None]) -> None:
        for callback in self.callbacks:
            tell(callback)
