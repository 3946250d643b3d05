"""Progress of training or evaluation: a bar on a terminal or in a notebook, plain lines elsewhere."""

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
from expgen.text import duration, notify
from expgen.training.loop import OnRow, Watcher

LINE_SECONDS = 10.0  # between two plain lines
SHOWN = {  # label → column of a metrics row
    "return": "episode_return",
    "solved": "episode_solved",
    "train": "train_return",
    "test": "test_return",
    "covers": "test_oracle_share",
}
Unit = Literal["step", "episode"]
COUNTS = {"step": "env_steps", "episode": "episodes"}  # unit → column of a row that counts it
MIN_RATE_SECONDS = 0.1  # too short for a rate: a run on another machine reports all its rows at once


class Progress:
    """Shows the progress of all learners together, or of the episodes that are played.

    Scores are means over the learners of one kind, members or explorers. Return and solved rate of training episodes
    are shown once as many episodes of a learner have ended as it has environments. For episodes there is no line in the
    first LINE_SECONDS and none at the end, since a table follows.
    """

    def __init__(self, unit: Unit = "step", banner: Sequence[str] = ()) -> None:
        """`banner`: lines to print once the work starts, after all checks of the input."""
        self.unit, self.banner = unit, banner
        self.bar: Any = None
        self.round_seconds: dict[str, float] = {}  # time between the last two updates of each learner

    def start(self, total: int, done: dict[str, int]) -> None:
        """Start, or restart, with `total` steps or episodes in all and those already `done` by each learner."""
        self.close()
        for line in self.banner:
            notify(line)
        self.banner = ()
        self.total, self.done = total, dict(done)
        self.latest: dict[str, dict[str, float]] = {}  # latest scores of each learner
        self.row_time: dict[str, float] = {}  # time of each learner's last update
        self.round_seconds = {}
        initial, is_step = sum(self.done.values()), self.unit == "step"
        if shows_bar():
            options = {"unit": self.unit, "unit_scale": True, "dynamic_ncols": True, "leave": is_step}
            self.bar = _bar_class()(total=total, initial=initial, **options)
        self.printed = -LINE_SECONDS if is_step else time.monotonic()
        self.began = None if is_step else (self.printed, initial)  # steps: set by the first row, since starting is slow

    def row(self, learner: str, row: dict[str, float]) -> None:
        """Add one row of metrics."""
        before, now = sum(self.done.values()), time.monotonic()
        self.done[learner] = int(row[COUNTS[self.unit]])
        count = sum(self.done.values())
        if count > before:  # not a row that only adds late scores
            if learner in self.row_time:
                self.round_seconds[learner] = now - self.row_time[learner]
            self.row_time[learner] = now
        scores = {label: row[column] for label, column in SHOWN.items() if column in row}
        if row.get("episodes", 0) < row.get("envs", 0):  # the first episodes to end are short: most of them are solved
            scores = {label: score for label, score in scores.items() if label not in ("return", "solved")}
        others = {} if self.unit == "episode" else self.latest  # for episodes show only the current player
        self.latest = {**others, learner: {**self.latest.get(learner, {}), **scores}}
        if self.bar is not None:
            self.bar.update(count - before)
            self.bar.set_postfix_str(self.scores())
            return
        self.began = self.began or (now, count)
        is_new = self.unit == "step" or count > before
        is_milestone = self.unit == "step" and (count >= self.total or "test_return" in row)
        if is_new and (now - self.printed >= LINE_SECONDS or is_milestone):
            self.printed = now
            began, count_before = self.began
            elapsed = now - began
            rate = (count - count_before) / elapsed if elapsed > MIN_RATE_SECONDS else 0.0
            notify(self._line(count, rate))

    def _line(self, count: int, rate: float) -> str:
        """Return a plain line: steps or episodes so far, rate and time left (unknown if `rate` is 0), and scores."""
        parts = [f"{count:,}/{self.total:,} {self.unit}s"]
        if rate:
            speed = f"{rate:,.{0 if rate >= 10 else 1}f} {self.unit}s/s"
            parts += [speed, f"{duration((self.total - count) / rate)} left"]
        return "  ".join([*parts, self.scores()]).rstrip()

    def scores(self) -> str:
        """`return 3.00 solved 0.25`; for a population `members 1.20M: return 3.00 | explorer 300k: covers 0.62`."""
        kinds: dict[str, list[str]] = {}
        for learner in {**self.done, **self.latest}:
            kinds.setdefault(_kind_of(learner), []).append(learner)
        parts = []
        for kind, learners in kinds.items():
            latest = [self.latest.get(learner, {}) for learner in learners]
            values = {label: [scores[label] for scores in latest if label in scores] for label in SHOWN}
            text = " ".join(f"{label} {statistics.fmean(each):.2f}" for label, each in values.items() if each)
            if len(kinds) > 1 and self.unit == "step":
                steps = tqdm.format_sizeof(sum(self.done.get(learner, 0) for learner in learners))
                text = f"{kind}{'s' * (len(learners) > 1)} {steps}: {text or '-'}"
            parts.append(text)
        return " | ".join(part for part in parts if part)

    def hide_bar(self) -> None:
        """Clear the bar until the next row, before something else is printed."""
        if self.bar is not None:
            self.bar.clear()

    def when_stopping(self) -> str:
        """Return when a stopped run will end, with the time of the slowest learner's last round if it is known."""
        times = self.round_seconds.values()
        about = f"about {duration(max(times))}" if times else "which can take minutes"
        return f"when every learner has finished its rollout and update and written a checkpoint, {about}"

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class EpisodeMeans:
    """Callback for each episode of `player`: calls `on_row` with the number of episodes and their means so far.

    The means are over the episodes before the first unfinished one of the list. Episodes that end early are short, and
    in many games short episodes are the successful ones, so the mean over all finished ones would be biased.
    """

    def __init__(self, player: str, on_row: OnRow) -> None:
        self.player, self.on_row = player, on_row
        self.waiting: dict[int, Episode] = {}  # finished before an earlier one, by number
        self.next = 0  # number of the first unfinished episode
        self.finished = self.averaged = self.solved = 0
        self.total_return = 0.0

    def __call__(self, episode: Episode) -> None:
        if episode.number < self.next:  # another list of episodes begins
            self.next = 0
        self.finished += 1
        self.waiting[episode.number] = episode
        while self.next in self.waiting:
            ended = self.waiting.pop(self.next)
            self.next, self.averaged = self.next + 1, self.averaged + 1
            self.total_return += ended.episode_return
            self.solved += ended.solved
        row: dict[str, float] = {"episodes": self.finished}
        if self.averaged:
            row["episode_return"] = self.total_return / self.averaged
            row["episode_solved"] = self.solved / self.averaged
        self.on_row(self.player, row)


@contextlib.contextmanager
def with_progress(watcher: Watcher, quiet: bool) -> Iterator[Watcher]:
    """Add a progress bar, unless `quiet`, and signal handling to the `watcher` of a Python caller.

    The first Ctrl-C has every learner write a checkpoint and the call return; the second raises KeyboardInterrupt.
    SIGTERM and SIGHUP do the same, and are sent again to this process once the call has returned.
    """
    progress = Progress()
    has_bar = shows_bar() and not quiet

    def start(total: int, done: dict[str, int]) -> None:
        if has_bar:
            progress.start(total, done)
        watcher.on_start(total, done)

    def row(learner: str, values: dict[str, float]) -> None:
        if has_bar:
            progress.row(learner, values)
        watcher.on_row(learner, values)

    with progress, StopSignals(when_stopping=progress.when_stopping) as signals:
        yield Watcher(start, row, lambda: signals.arrived() or watcher.should_stop())
    if signals.number not in (None, signal.SIGINT):
        os.kill(os.getpid(), signals.number)


def shows_bar() -> bool:
    """Whether a bar can be shown: on a terminal or in a notebook."""
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _bar_class() -> Any:
    """Return tqdm's text bar, or its widget in notebooks that support widgets."""
    if _in_notebook() and importlib.util.find_spec("ipywidgets"):
        from tqdm.notebook import tqdm as widget

        return widget
    return tqdm


def _kind_of(learner: str) -> str:
    """`member` for `member3` and for `RUN/member3`."""
    return learner.rpartition("/")[2].rstrip("0123456789")
