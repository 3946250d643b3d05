"""Mazes as grids of cells, read from pictures: what a wall follower and the oracles go by.

A cell is free if the agent may stand there and go on playing: walls are not, and the goal is not, since reaching it
ends the episode.
"""

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
