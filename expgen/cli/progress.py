"""Progress: a bar with rate, time left and latest scores on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Mapping
from typing import Any, Literal

from tqdm import tqdm

LINE_SECONDS = 10.0
Unit = Literal["step", "episode"]
COUNTS = {"step": "env_steps", "episode": "episodes"}  # the entry of a row that counts them
MOMENT = 0.1  # seconds, too few for a rate: runs elsewhere report all at once


class Progress:
    """Follows the rows of metrics of all learners together, or of the episodes that someone plays.

    Episodes that are soon played need no line, and none at their end: a table follows.
    """

    def __init__(self, total: int, done: Mapping[str, int] | None = None, unit: Unit = "step") -> None:
        self.total, self.unit = total, unit
        self.done = dict(done or {})  # steps or episodes by who took them
        self.latest: dict[str, float] = {}
        self.bar: Any = None
        if sys.stderr.isatty():
            begun = sum(self.done.values())
            self.bar = tqdm(
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
        shown = {"return": "episode_return", "solved": "episode_solved", "train": "train_return", "test": "test_return"}
        self.latest |= {short: row[name] for short, name in shown.items() if name in row}
        scores = " ".join(f"{name} {value:.2f}" for name, value in self.latest.items())
        if self.bar is not None:
            self.bar.update(steps - before)
            self.bar.set_postfix_str(scores)
            return
        now = time.monotonic()
        self.began = self.began or (now, steps)
        if self.unit == "episode" and steps == before:
            return  # said already
        is_milestone = self.unit == "step" and (steps >= self.total or "test_return" in row)
        if now - self.printed >= LINE_SECONDS or is_milestone:
            self.printed = now
            elapsed = now - self.began[0]
            rate = (steps - self.began[1]) / elapsed if elapsed > MOMENT else 0.0
            left = f"{(self.total - steps) / rate:,.0f} s left" if rate else ""
            done = f"{steps:,}/{self.total:,} {self.unit}s"
            speed = f"{rate:,.{0 if rate >= 10 or not rate else 1}f} {self.unit}s/s"
            print(f"{done}  {speed}  {left}  {scores}", file=sys.stderr, flush=True)

    def make_room(self) -> None:
        """Take the bar away until the next row: something else is about to be printed."""
        if self.bar is not None:
            self.bar.clear()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
