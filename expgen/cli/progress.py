"""Progress: a bar with rate, time left and latest scores on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

LINE_SECONDS = 10.0
MOMENT = 0.1  # seconds, too few for a rate: runs elsewhere report all at once


class Progress:
    """Follows the rows of metrics of all learners together."""

    def __init__(self, total_steps: int, done: Mapping[str, int] | None = None) -> None:
        self.total = total_steps
        self.done = dict(done or {})  # steps by learner
        self.latest: dict[str, float] = {}
        self.bar: Any = None
        if sys.stderr.isatty():
            begun = sum(self.done.values())
            self.bar = tqdm(total=total_steps, initial=begun, unit="step", unit_scale=True, dynamic_ncols=True)
        self.began: tuple[float, int] | None = None
        self.printed = -LINE_SECONDS

    def row(self, learner: str, row: dict[str, float]) -> None:
        """Take in one row of metrics."""
        before = sum(self.done.values())
        self.done[learner] = int(row["env_steps"])
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
        if now - self.printed >= LINE_SECONDS or steps >= self.total or "test_return" in row:
            self.printed = now
            elapsed = now - self.began[0]
            rate = (steps - self.began[1]) / elapsed if elapsed > MOMENT else 0.0
            left = f"{(self.total - steps) / rate:,.0f} s left" if rate else ""
            print(f"{steps:,}/{self.total:,} steps  {rate:,.0f} steps/s  {left}  {scores}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
