"""A custom environment: expgen train --import examples/own_env.py --env gridworld --option size=7 --run runs/grid"""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import expgen

MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])  # up, down, left, right


class GridWorld(gymnasium.Env):
    """The agent (green) must find the goal (red) between random walls (grey); each cell is one pixel."""

    def __init__(self, size: int = 9, walls: float = 0.2) -> None:
        self.size, self.walls = size, walls
        self.observation_space, self.action_space = Box(0, 255, (size, size, 3), np.uint8), Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)  # the seed is the level: draw everything random from self.np_random
        self.steps, self.wall = 0, self.np_random.random((self.size, self.size)) < self.walls
        self.agent, self.goal = np.argwhere(~self.wall)[self.np_random.choice((~self.wall).sum(), 2, replace=False)]
        return self.image(), {}

    def step(self, action):
        self.steps += 1
        target = np.clip(self.agent + MOVES[action], 0, self.size - 1)
        if not self.wall[*target]:
            self.agent = target
        is_solved = bool((self.agent == self.goal).all())
        return self.image(), 10.0 * is_solved, is_solved, self.steps == 100, {"is_success": is_solved}

    def image(self):
        image = np.stack([self.wall * np.uint8(128)] * 3, axis=2)
        image[*self.goal], image[*self.agent] = (255, 0, 0), (0, 255, 0)
        return image


expgen.register_env("gridworld", GridWorld)
