"""A gridworld of your own: expgen train --import examples/own_env.py --env gridworld --option size=7 --run runs/grid"""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import expgen

MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])  # up, down, left, right


class GridWorld(gymnasium.Env):
    """Find the goal (red) between random walls (grey), one pixel a cell; the agent is green."""

    def __init__(self, size: int = 9, walls: float = 0.2) -> None:
        self.size, self.walls = size, walls
        self.observation_space, self.action_space = Box(0, 255, (size, size, 3), np.uint8), Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # the level: all that differs between levels is drawn from self.np_random
        self.steps, self.wall = 0, self.np_random.random((self.size, self.size)) < self.walls
        self.agent, self.goal = np.argwhere(~self.wall)[self.np_random.choice((~self.wall).sum(), 2, replace=False)]
        return self.picture(), {}

    def step(self, action):
        self.steps += 1
        if not self.wall[*(to := np.clip(self.agent + MOVES[action], 0, self.size - 1))]:
            self.agent = to
        is_there = bool((self.agent == self.goal).all())
        return self.picture(), 10.0 * is_there, is_there, self.steps == 100, {"is_success": is_there}

    def picture(self):
        picture = np.stack([self.wall * np.uint8(128)] * 3, axis=2)
        picture[*self.goal], picture[*self.agent] = (255, 0, 0), (0, 255, 0)
        return picture


expgen.register_env("gridworld", GridWorld)
