"""The wall follower (Appendix B.2), mazes as grids of cells read from pictures, and what there is to cover in them.

The right-hand rule, with the goal for a wall, visits all of a maze without loops: at each step the right of the heading
is tried, then ahead, then left, then back; it starts out heading right. Where the goal leaves it nowhere to go it stays
(our choice: the original would bump into it). A cell is free if the agent may stand there and go on playing: walls are
not, and the goal is not, since reaching it ends the episode.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from expgen.envs.maze_generator import AGENT_COLOR, GOAL_COLOR, THEMES

PROCGEN_SIDE = 15  # cells per side of the world of ProcGen's Maze, easy mode
PROCGEN_AGENT_GREEN = 255  # in flat colours on black: the agent alone has so much green, and
PROCGEN_FREE_RED = 0  # the agent, the goal and walls have some red


class Layout(NamedTuple):
    """N mazes, with a border that is not free."""

    is_free: ndarray  # [N, H, W] bool, the agent's own cell included
    agent: ndarray  # [N] int64, row * W + column


def read_minimaze(obs: ndarray) -> Layout:
    """minimaze's pictures `[N, H, W, 3]`, a pixel to a cell; walls are brighter than any floor."""
    is_agent = (obs == AGENT_COLOR).all(-1)  # [N, H, W]
    brightest_floor = (int(THEMES[:, 1].max()) + int(THEMES[:, 0].max(-1).min())) // 2
    is_goal = (obs == GOAL_COLOR).all(-1)
    is_dark = obs.max(-1) <= brightest_floor
    return Layout(is_agent | (is_dark & ~is_goal), is_agent.reshape(len(obs), -1).argmax(1))


def read_procgen_maze(obs: ndarray) -> Layout:
    """ProcGen's Maze in flat colours on black `[N, 64, 64, 3]`, looked at in the middle of each cell."""
    middle = ((np.arange(PROCGEN_SIDE) + 0.5) * obs.shape[1] / PROCGEN_SIDE).astype(np.int64)  # [15]
    cell = np.pad(obs[:, middle][:, :, middle], ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1)  # [N, 17, 17, 3]
    is_agent = cell[..., 1] == PROCGEN_AGENT_GREEN
    return Layout(is_agent | (cell[..., 0] == PROCGEN_FREE_RED), is_agent.reshape(len(obs), -1).argmax(1))


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


minimaze_follower = partial(WallFollower, read_minimaze, MINIMAZE_ACTION)  # plays minimaze as it is
# Plays ProcGen's Maze in easy mode, from a picture in flat colours on black.
procgen_maze_follower = partial(WallFollower, read_procgen_maze, PROCGEN_ACTION)


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


def reachable_cells(layout: Layout) -> ndarray:
    """Free cells connected to the agent's, its own included, `[N]`."""
    is_free, agent = layout
    reached = np.zeros_like(is_free)
    reached.reshape(len(agent), -1)[np.arange(len(agent)), agent] = True
    count = np.zeros(len(agent), dtype=np.int64)
    while (grown := reached.sum((1, 2))).sum() > count.sum():
        count = grown
        spread = reached.copy()
        for axis in (1, 2):
            for shift in (-1, 1):  # what is rolled over the border meets a wall there
                spread |= np.roll(reached, shift, axis)
        reached = spread & is_free
    return count


def tour_frames(layout: Layout, num_steps: int, alike: Sequence[tuple[int, int]] = ()) -> ndarray:
    """Distinct frames a wall follower shows in so many steps, the first included, `[N]`.

    A frame is a cell and the side the agent looks to: that of its last move to the right or left, left at first. In
    the cells `alike`, rows and columns, both sides are drawn the same.
    """
    N, height, width = layout.is_free.shape
    here, agent = np.arange(N), layout.agent.copy()
    heading, side = np.zeros(N, dtype=np.int64), np.ones(N, dtype=np.int64)
    shown = np.zeros((N, 2, height * width), dtype=bool)
    shown[here, side, agent] = True
    for _ in range(num_steps):
        heading = next_heading(layout._replace(agent=agent), heading)
        agent = agent + steps(layout)[heading]
        side = np.where(heading == 0, 0, np.where(heading == 2, 1, side))
        shown[here, side, agent] = True
    for row, column in alike:
        shown[:, 0, row * width + column] |= shown[:, 1, row * width + column]
        shown[:, 1, row * width + column] = False
    return shown.sum((1, 2))
