"""Watching work from the command line: what a task tells its watcher, as progress."""

from expgen.cli.progress import Progress, Unit
from expgen.evaluation.evaluate import Episode
from expgen.training.life import Watcher


class Watch:
    """Progress, once the run says how long it is."""

    def __init__(self, unit: Unit = "step") -> None:
        self.unit: Unit = unit
        self.progress: Progress | None = None

    def start(self, total: int, done: dict[str, int]) -> None:
        self.close()
        self.progress = Progress(total, done, self.unit)

    def row(self, learner: str, row: dict[str, float]) -> None:
        assert self.progress is not None
        self.progress.row(learner, row)

    def make_room(self) -> None:
        """For a line of something else."""
        if self.progress:
            self.progress.make_room()

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
