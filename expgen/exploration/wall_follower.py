"""The wall follower (Appendix B.2), maze layouts read from pictures, and the number of cells to visit in them.

The right-hand rule, which treats the goal as a wall, visits every reachable cell of a maze without loops: at each step
it tries right of the heading, ahead, left, then back; the first heading is right. If the goal blocks every way, it
stays (our choice: the original moves against the goal). A cell is free if the agent can enter it without ending the
episode, so walls and the goal are not free.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from expgen.envs.maze_generator import AGENT_COLOR, GOAL_COLOR, THEMES

PROCGEN_SIDE = 15  # cells per side of the world of ProcGen's Maze, easy mode
PROCGEN_AGENT_GREEN = 255  # in flat colours on black only the agent has this much green
PROCGEN_FREE_RED = 0  # in flat colours on black the agent, the goal and walls have some red


class Layout(NamedTuple):
    """N mazes, surrounded by cells that are not free."""

    is_free: ndarray  # [N, H, W] bool, the agent's own cell included
    agent: ndarray  # [N] int64, row * W + column


def read_minimaze(obs: ndarray) -> Layout:
    """Return the layout in minimaze's pictures `[N, H, W, 3]`, one pixel per cell; walls are brighter than floors."""
    is_agent = (obs == AGENT_COLOR).all(-1)  # [N, H, W]
    threshold = (int(THEMES[:, 1].max()) + int(THEMES[:, 0].max(-1).min())) // 2
    is_goal = (obs == GOAL_COLOR).all(-1)
    is_dark = obs.max(-1) <= threshold
    return Layout(is_agent | (is_dark & ~is_goal), is_agent.reshape(len(obs), -1).argmax(1))


def read_procgen_maze(obs: ndarray) -> Layout:
    """Return the layout in pictures of ProcGen's Maze in flat colours on black `[N, 64, 64, 3]`."""
    middle = ((np.arange(PROCGEN_SIDE) + 0.5) * obs.shape[1] / PROCGEN_SIDE).astype(np.int64)  # [15]
    cell = np.pad(obs[:, middle][:, :, middle], ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1)  # [N, 17, 17, 3]
    is_agent = cell[..., 1] == PROCGEN_AGENT_GREEN
    return Layout(is_agent | (cell[..., 0] == PROCGEN_FREE_RED), is_agent.reshape(len(obs), -1).argmax(1))


STAY = 4  # headings 0 to 3 are right, down, left, up
_TURNS = np.array([1, 0, 3, 2])  # clockwise quarter turns in the order tried: right, ahead, left, back
MINIMAZE_ACTION = (2, 4, 1, 3, 0)  # action of each heading
PROCGEN_ACTION = (7, 3, 1, 5, 4)


class WallFollower:
    """An agent that reads the maze from its picture; its only state is the headings."""

    def __init__(self, read: Callable[[ndarray], Layout], action: tuple[int, ...]) -> None:
        self.read = read
        self.action = np.array(action, dtype=np.int32)  # [5]
        self.heading = np.zeros(0, dtype=np.int64)  # [N]

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        """Return actions `[N]` for `obs` `[N, …]` and `first` `[N]`; deterministic, so `episode` is unused."""
        if len(self.heading) != len(first):
            self.heading = np.zeros(len(first), dtype=np.int64)
        self.heading = next_heading(self.read(obs), np.where(first, 0, self.heading))
        return self.action[self.heading]


minimaze_follower = partial(WallFollower, read_minimaze, MINIMAZE_ACTION)
procgen_maze_follower = partial(WallFollower, read_procgen_maze, PROCGEN_ACTION)  # easy mode, flat colours on black


def next_heading(layout: Layout, heading: ndarray) -> ndarray:
    """Return the next heading of the right-hand rule after `heading` `[N]`; STAY if no neighbour is free."""
    candidate = (heading[:, None] + _TURNS) % 4  # [N, 4]; after STAY the order does not matter: none is free
    flat = layout.is_free.reshape(len(heading), -1)
    target = layout.agent[:, None] + position_steps(layout)[candidate]  # [N, 4]
    is_open = np.take_along_axis(flat, target, 1)
    chosen = np.take_along_axis(candidate, is_open.argmax(1)[:, None], 1)[:, 0]
    return np.where(is_open.any(1), chosen, STAY)


def position_steps(layout: Layout) -> ndarray:
    """Return the change of position for each heading, `[5]`."""
    width = layout.is_free.shape[2]
    return np.array([1, width, -1, -width, 0])


def reachable_cells(layout: Layout) -> ndarray:
    """Count the free cells connected to the agent's cell, including it, `[N]`."""
    is_free, agent = layout
    reached = np.zeros_like(is_free)
    reached.reshape(len(agent), -1)[np.arange(len(agent)), agent] = True
    count = np.zeros(len(agent), dtype=np.int64)
    while (grown := reached.sum((1, 2))).sum() > count.sum():
        count = grown
        spread = reached.copy()
        for axis in (1, 2):
            for shift in (-1, 1):  # cells rolled over the border are not free
                spread |= np.roll(reached, shift, axis)
        reached = spread & is_free
    return count


def tour_frames(layout: Layout, num_steps: int, symmetric_cells: Sequence[tuple[int, int]] = ()) -> ndarray:
    """Count the distinct frames of a wall follower in `num_steps` steps, including the first frame, `[N]`.

    A frame is a cell and the side that the agent faces: that of its last horizontal move, initially left. In
    `symmetric_cells` (row, column) both sides look the same.
    """
    num, height, width = layout.is_free.shape
    row, agent = np.arange(num), layout.agent.copy()
    heading, side = np.zeros(num, dtype=np.int64), np.ones(num, dtype=np.int64)
    shown = np.zeros((num, 2, height * width), dtype=bool)
    shown[row, side, agent] = True
    for _ in range(num_steps):
        heading = next_heading(layout._replace(agent=agent), heading)
        agent = agent + position_steps(layout)[heading]
        side = np.where(heading == 0, 0, np.where(heading == 2, 1, side))
        shown[row, side, agent] = True
    for cell_row, cell_column in symmetric_cells:
        cell = cell_row * width + cell_column
        shown[:, 0, cell] |= shown[:, 1, cell]
        shown[:, 1, cell] = False
    return shown.sum((1, 2))
