"""Watching work: what a task tells its watcher, as progress; and Ctrl-C, which it stops for."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence

from expgen.evaluation.evaluate import Episode
from expgen.runs.progress import Progress, Unit, has_viewer
from expgen.runs.stop import StopSignals
from expgen.text import duration
from expgen.training.life import Watcher


class Watch:
    """Progress, once the run says how long it is; before it, what begins."""

    def __init__(self, unit: Unit = "step", banner: Sequence[str] = ()) -> None:
        """`banner`: lines that are printed when work begins, after all that could be refused."""
        self.unit: Unit = unit
        self.banner = banner
        self.progress: Progress | None = None

    def start(self, total: int, done: dict[str, int]) -> None:
        self.close()
        print(*(f"{line}\n" for line in self.banner), sep="", end="", file=sys.stderr, flush=True)
        self.banner = ()
        self.progress = Progress(total, done, self.unit)

    def row(self, learner: str, row: dict[str, float]) -> None:
        assert self.progress is not None
        self.progress.row(learner, row)

    def make_room(self) -> None:
        """For a line of something else."""
        if self.progress:
            self.progress.make_room()

    def still_to_do(self) -> str:
        """What a stop waits for, and how long that took the last time."""
        took = self.progress.round_seconds() if self.progress else None
        about = f", about {duration(took)}" if took is not None else ""
        return f"when every learner has finished its rollout and update and written a checkpoint{about}"

    def close(self) -> None:
        if self.progress:
            self.progress.close()
            self.progress = None


class SoFar:
    """Tells `watcher` of the episodes that `player` plays, as they end."""

    def __init__(self, player: str, watcher: Watcher) -> None:
        self.player, self.watcher, self.count, self.total_return, self.solved = player, watcher, 0, 0.0, 0

    def __call__(self, episode: Episode) -> None:
        self.count += 1
        self.total_return += episode.episode_return
        self.solved += episode.solved
        means = {"episode_return": self.total_return / self.count, "episode_solved": self.solved / self.count}
        self.watcher.on_row(self.player, {"episodes": self.count, **means})


@contextlib.contextmanager
def watched(watcher: Watcher, quiet: bool) -> Iterator[Watcher]:
    """`watcher` for work begun from Python: with a bar where somebody sees it, unless `quiet`, and stopped by Ctrl-C.

    The first Ctrl-C has every learner write a checkpoint and the work return; the second raises KeyboardInterrupt. So
    do other signals that end processes, which are passed on once the work has returned.
    """
    watch = None if quiet or not has_viewer() else Watch()

    def start(total: int, done: dict[str, int]) -> None:
        if watch is not None:
            watch.start(total, done)
        watcher.on_start(total, done)

    def row(learner: str, values: dict[str, float]) -> None:
        if watch is not None:
            watch.row(learner, values)
        watcher.on_row(learner, values)

    with StopSignals(still_to_do=watch.still_to_do if watch else Watch().still_to_do) as signals:
        try:
            yield Watcher(start, row, lambda: signals.arrived() or watcher.should_stop())
        finally:
            if watch is not None:
                watch.close()
    if signals.number not in (None, signal.SIGINT):
        os.kill(os.getpid(), signals.number)
