"""Progress of work: a bar with rate, time left and latest scores on a terminal or in a notebook, plain lines elsewhere.

And what work begun from Python adds to it: Ctrl-C, which it stops for.
"""

import contextlib
import importlib.util
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from tqdm import tqdm

from expgen.evaluation.evaluate import Episode
from expgen.runs.stop import StopSignals
from expgen.text import duration
from expgen.training.loop import OnRow, Watcher

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

    def __init__(self, unit: Unit = "step", banner: Sequence[str] = ()) -> None:
        """`banner`: lines that are printed when work begins, after all that could be refused."""
        self.unit, self.banner = unit, banner
        self.bar: Any = None
        self.took: dict[str, float] = {}  # seconds between the last two rows of each learner

    def start(self, total: int, done: dict[str, int]) -> None:
        """Work begins: `total` steps or episodes, of which `done` are done, by who took them. It may begin again."""
        self.close()
        print(*(f"{line}\n" for line in self.banner), sep="", end="", file=sys.stderr, flush=True)
        self.banner = ()
        self.total, self.done = total, dict(done)
        self.latest: dict[str, dict[str, float]] = {}  # scores by whose they are
        self.heard: dict[str, float] = {}  # when each learner's last row came
        self.took = {}
        begun, is_step = sum(self.done.values()), self.unit == "step"
        if has_viewer():
            how = {"unit": self.unit, "unit_scale": True, "dynamic_ncols": True, "leave": is_step}
            self.bar = _bar_kind()(total=total, initial=begun, **how)
        self.printed = -LINE_SECONDS if is_step else time.monotonic()
        self.began = None if is_step else (self.printed, begun)  # steps: with the first row, for a run begins slowly

    def row(self, learner: str, row: dict[str, float]) -> None:
        """Take in one row of metrics."""
        before, now = sum(self.done.values()), time.monotonic()
        self.done[learner] = int(row[COUNTS[self.unit]])
        count = sum(self.done.values())
        if learner in self.heard:
            self.took[learner] = now - self.heard[learner]
        self.heard[learner] = now
        scores = {short: row[name] for short, name in SHOWN.items() if name in row}
        others = {} if self.unit == "episode" else self.latest  # of episodes, whoever plays now
        self.latest = {**others, learner: {**self.latest.get(learner, {}), **scores}}
        if self.bar is not None:
            self.bar.update(count - before)
            self.bar.set_postfix_str(self.scores())
            return
        self.began = self.began or (now, count)
        is_news = self.unit == "step" or count > before
        is_milestone = self.unit == "step" and (count >= self.total or "test_return" in row)
        if is_news and (now - self.printed >= LINE_SECONDS or is_milestone):
            self.printed = now
            elapsed = now - self.began[0]
            rate = (count - self.began[1]) / elapsed if elapsed > MOMENT else 0.0
            parts = [f"{count:,}/{self.total:,} {self.unit}s"]
            if rate:
                speed = f"{rate:,.{0 if rate >= 10 else 1}f} {self.unit}s/s"
                parts += [speed, f"{duration((self.total - count) / rate)} left"]
            print("  ".join([*parts, self.scores()]), file=sys.stderr, flush=True)

    def scores(self) -> str:
        """`return 3.00 solved 0.25`; of a population `members 1.20M: return 3.00 | explorer 300k: covers 0.62`."""
        kinds: dict[str, list[str]] = {}
        for learner in {**self.done, **self.latest}:
            kinds.setdefault(_kind_of(learner), []).append(learner)
        parts = []
        for kind, learners in kinds.items():
            found = [self.latest.get(learner, {}) for learner in learners]
            values = {name: [scores[name] for scores in found if name in scores] for name in SHOWN}
            text = " ".join(f"{name} {statistics.fmean(each):.2f}" for name, each in values.items() if each)
            if len(kinds) > 1 and self.unit == "step":
                steps = tqdm.format_sizeof(sum(self.done.get(learner, 0) for learner in learners))
                text = f"{kind}{'s' * (len(learners) > 1)} {steps}: {text or '-'}"
            parts.append(text)
        return " | ".join(part for part in parts if part)

    def make_room(self) -> None:
        """Take the bar away until the next row: something else is about to be printed."""
        if self.bar is not None:
            self.bar.clear()

    def still_to_do(self) -> str:
        """What a stop waits for, and how long that took the slowest learner the last time."""
        about = f", about {duration(max(self.took.values()))}" if self.took else ""
        return f"when every learner has finished its rollout and update and written a checkpoint{about}"

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class SoFar:
    """Tells `on_row` of the episodes that `player` plays, as they end."""

    def __init__(self, player: str, on_row: OnRow) -> None:
        self.player, self.on_row, self.count, self.total_return, self.solved = player, on_row, 0, 0.0, 0

    def __call__(self, episode: Episode) -> None:
        self.count += 1
        self.total_return += episode.episode_return
        self.solved += episode.solved
        means = {"episode_return": self.total_return / self.count, "episode_solved": self.solved / self.count}
        self.on_row(self.player, {"episodes": self.count, **means})


@contextlib.contextmanager
def watched(watcher: Watcher, quiet: bool) -> Iterator[Watcher]:
    """`watcher` for work begun from Python: with a bar where somebody sees it, unless `quiet`, and stopped by Ctrl-C.

    The first Ctrl-C has every learner write a checkpoint and the work return; the second raises KeyboardInterrupt. So
    do other signals that end processes, which are passed on once the work has returned.
    """
    progress = Progress()
    shown = Watcher(progress.start, progress.row) if has_viewer() and not quiet else Watcher()

    def start(total: int, done: dict[str, int]) -> None:
        shown.on_start(total, done)
        watcher.on_start(total, done)

    def row(learner: str, values: dict[str, float]) -> None:
        shown.on_row(learner, values)
        watcher.on_row(learner, values)

    with progress, StopSignals(still_to_do=progress.still_to_do) as signals:
        yield Watcher(start, row, lambda: signals.arrived() or watcher.should_stop())
    if signals.number not in (None, signal.SIGINT):
        os.kill(os.getpid(), signals.number)


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
