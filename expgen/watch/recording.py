"""Recording: one episode as plain data. Everything that shows an episode is made from this and nothing else."""

from typing import NamedTuple

from numpy import ndarray

from expgen.watch.actions import ActionRows
from expgen.watch.film import Film
from expgen.watch.reasons import Cast, Reason


class Step(NamedTuple):
    """One step: what was done, why, and what came of it."""

    action: int
    reason: Reason
    reward: float
    place: tuple[int, int] | None  # row and column of the cell it was taken from; None where nobody can tell


class LevelMap(NamedTuple):
    """The level as it was at the start, seen whole."""

    picture: ndarray  # [H, W, 3] uint8, cut to the world
    rows: int
    columns: int
    reachable: int | None  # cells that an agent could visit without ending the episode, its first included


class Recording(NamedTuple):
    """One episode. Frame t is what was seen when step t was decided; what a last step leads to is never seen."""

    env: str
    level: int | None  # None where the environment has no levels to name
    split: str  # "train", "test", or "" where nobody said
    agent: str
    seed: int
    solved: bool
    actions: ActionRows
    cast: Cast
    steps: tuple[Step, ...]
    film: Film  # [T] the level, large
    seen: Film  # [T] what the agent sees
    level_map: LevelMap | None

    @property
    def episode_return(self) -> float:
        """What the game paid."""
        return sum(step.reward for step in self.steps)
