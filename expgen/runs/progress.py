"""Progress: a bar with rate, time left and latest scores on a terminal or in a notebook, plain lines elsewhere."""

import importlib.util
import sys
import time
from collections.abc import Mapping
from typing import Any, Literal

from tqdm import tqdm

from expgen.text import duration

LINE_SECONDS = 10.0
SHOWN = {  # names of scores, and the columns of a row that hold them
    "return": "episode_return",
    "solved": "episode_solved",
    "train": "train_return",
    "test": "test_return",
    "covers": "test_oracle_share",
}
Unit = Literal["step", "episode"]
COUNTS = {"step": "env_steps", "episode": "episodes"}  # the entry of a row that counts them
MOMENT = 0.1  # seconds, too few for a rate: runs elsewhere report all at once


class Progress:
    """Follows the rows of metrics of all learners together, or of the episodes that someone plays.

    Scores are means over the learners of a kind; of a population each kind, members and explorer, has its own.
    Episodes that are soon played need no line, and none at their end: a table follows.
    """

    def __init__(self, total: int, done: Mapping[str, int] | None = None, unit: Unit = "step") -> None:
        self.total, self.unit = total, unit
        self.done = dict(done or {})  # steps or episodes by who took them
        self.latest: dict[str, dict[str, float]] = {}  # scores by whose they are
        self.heard: dict[str, float] = {}  # when each learner's last row came,
        self.took: dict[str, float] = {}  # and how long after the one before
        self.bar: Any = None
        if has_viewer():
            begun = sum(self.done.values())
            self.bar = _bar_kind()(
                total=total, initial=begun, unit=unit, unit_scale=True, dynamic_ncols=True, leave=unit == "step"
            )
        self.began: tuple[float, int] | None = None  # of steps with the first row: a run takes a while to begin
        self.printed = -LINE_SECONDS
        if unit == "episode":
            self.printed = time.monotonic()
            self.began = self.printed, sum(self.done.values())

    def row(self, learner: str, row: dict[str, float]) -> None:
        """Take in one row of metrics."""
        before = sum(self.done.values())
        self.done[learner] = int(row[COUNTS[self.unit]])
        steps = sum(self.done.values())
        now = time.monotonic()
        if learner in self.heard:
            self.took[learner] = now - self.heard[learner]
        self.heard[learner] = now
        before_it = {} if self.unit == "episode" else self.latest  # of episodes, whoever plays now
        scores_of_it = {short: row[name] for short, name in SHOWN.items() if name in row}
        self.latest = {**before_it, learner: {**self.latest.get(learner, {}), **scores_of_it}}
        scores = self.scores()
        if self.bar is not None:
            self.bar.update(steps - before)
            self.bar.set_postfix_str(scores)
            return
        self.began = self.began or (now, steps)
        if self.unit == "episode" and steps == before:
            return  # said already
        is_milestone = self.unit == "step" and (steps >= self.total or "test_return" in row)
        if now - self.printed >= LINE_SECONDS or is_milestone:
            self.printed = now
            elapsed = now - self.began[0]
            rate = (steps - self.began[1]) / elapsed if elapsed > MOMENT else 0.0
            left = f"{duration((self.total - steps) / rate)} left" if rate else ""
            done = f"{steps:,}/{self.total:,} {self.unit}s"
            speed = f"{rate:,.{0 if rate >= 10 or not rate else 1}f} {self.unit}s/s"
            print(f"{done}  {speed}  {left}  {scores}", file=sys.stderr, flush=True)

    def scores(self) -> str:
        """`return 3.00 solved 0.25`; of a population `members 1.20M: return 3.00 | explorer 300k: covers 0.62`."""
        kinds: dict[str, list[str]] = {}
        for learner in {**self.done, **self.latest}:
            kinds.setdefault(_kind_of(learner), []).append(learner)
        parts = []
        for kind, learners in kinds.items():
            found = [self.latest[learner] for learner in learners if learner in self.latest]
            means = {}
            for name in SHOWN:
                if values := [scores[name] for scores in found if name in scores]:
                    means[name] = sum(values) / len(values)
            text = " ".join(f"{name} {mean:.2f}" for name, mean in means.items())
            steps = tqdm.format_sizeof(sum(self.done.get(learner, 0) for learner in learners))
            parts.append(
                text
                if len(kinds) == 1 or self.unit == "episode"
                else f"{kind}{'s' * (len(learners) > 1)} {steps}: {text or '-'}"
            )
        return " | ".join(part for part in parts if part)

    def round_seconds(self) -> float | None:
        """How long a rollout and its update took the slowest learner; None before anyone has done two."""
        return max(self.took.values(), default=None)

    def make_room(self) -> None:
        """Take the bar away until the next row: something else is about to be printed."""
        if self.bar is not None:
            self.bar.clear()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def has_viewer() -> bool:
    """Whether somebody sees a bar move: on a terminal or in a notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _bar_kind() -> Any:
    """A bar of text or, in notebooks that have widgets, a widget."""
    if _in_notebook() and importlib.util.find_spec("ipywidgets"):
        from tqdm.notebook import tqdm as widget

        return widget
    return tqdm


def _kind_of(learner: str) -> str:
    """`member` for `member3`, also where it is `RUN/member3`."""
    return learner.rpartition("/")[2].rstrip("0123456789")
