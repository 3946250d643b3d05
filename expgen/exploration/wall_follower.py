"""The wall follower (Appendix B.2): right-hand rule, with the goal for a wall. It visits all of a maze without loops.

At each step it tries the right of its heading, then ahead, then left, then back; it starts out heading right. Where the
goal leaves it nowhere to go it stays (our choice: the original would bump into it).
"""

from collections.abc import Callable

import numpy as np
from numpy import ndarray

from expgen.exploration.maze_layout import Layout, read_minimaze, read_procgen_maze

STAY = 4  # a heading that is none; the others are right, down, left, up
_TRIED = np.array([1, 0, 3, 2])  # right of the heading, ahead, left, back, as quarter turns
MINIMAZE_ACTION = (2, 4, 1, 3, 0)  # of each heading
PROCGEN_ACTION = (7, 3, 1, 5, 4)


class WallFollower:
    """An agent that reads the maze from its picture; owns nothing but its headings."""

    def __init__(self, read: Callable[[ndarray], Layout], action: tuple[int, ...]) -> None:
        self.read = read
        self.action = np.array(action, dtype=np.int32)  # [5]
        self.heading = np.zeros(0, dtype=np.int64)  # [N]

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        """`obs` `[N, …]`, `first` `[N]` → actions `[N]`; nothing is random, so `episode` does not matter."""
        if len(self.heading) != len(first):
            self.heading = np.zeros(len(first), dtype=np.int64)
        self.heading = next_heading(self.read(obs), np.where(first, 0, self.heading))
        return self.action[self.heading]


def minimaze_follower() -> WallFollower:
    """Plays minimaze as it is."""
    return WallFollower(read_minimaze, MINIMAZE_ACTION)


def procgen_maze_follower() -> WallFollower:
    """Plays ProcGen's Maze in easy mode, from a picture in flat colours on black."""
    return WallFollower(read_procgen_maze, PROCGEN_ACTION)


def next_heading(layout: Layout, heading: ndarray) -> ndarray:
    """Where the right-hand rule goes from `layout.agent`, having come by `heading` `[N]`; STAY where it cannot."""
    candidate = (heading[:, None] + _TRIED) % 4  # [N, 4]; one that stayed has nowhere to go from any heading
    flat = layout.is_free.reshape(len(heading), -1)
    target = layout.agent[:, None] + steps(layout)[candidate]  # [N, 4]
    is_open = np.take_along_axis(flat, target, 1)
    chosen = np.take_along_axis(candidate, is_open.argmax(1)[:, None], 1)[:, 0]
    return np.where(is_open.any(1), chosen, STAY)


def steps(layout: Layout) -> ndarray:
    """What each heading adds to a position, `[5]`."""
    width = layout.is_free.shape[2]
    return np.array([1, width, -1, -width, 0])
