"""A Gymnasium environment that fails on one level in a chosen way. Importing this module registers `Bad-v0`."""

import os
import sys
import time
from typing import Any

import gymnasium
import numpy as np


class Bad(gymnasium.Env):
    """Episodes of nine steps; on `bad_level` the fourth step fails as `how` says."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, how: str = "", bad_level: int = -1) -> None:
        self.how, self.bad_level, self.level, self.steps = how, bad_level, -1, 0

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.level, self.steps = seed, 0
        return np.zeros(3, np.float32), {}

    def step(self, action: int) -> Any:
        self.steps += 1
        reward = 1.0
        if self.level == self.bad_level and self.steps == 4:
            match self.how:
                case "raises":
                    raise ZeroDivisionError("\x1b[31mno\nground")
                case "exits":
                    sys.exit(0)
                case "dies":
                    os._exit(3)
                case "hangs":
                    time.sleep(3600)
                case "pays nan":
                    reward = float("nan")
        return np.full(3, 0.1, np.float32), reward, self.steps == 9, False, {}


gymnasium.register("Bad-v0", entry_point=Bad)
