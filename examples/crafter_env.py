"""Crafter (Hafner 2021), an environment with the old Gym interface, adapted to Gymnasium:

    pip install 'expgen[crafter]'
    expgen train --import examples/crafter_env.py --env crafter --algo maxent --run runs/crafter

Crafter's `reset` takes no seed and its `step` returns four values. In this class a level is the seed of a world.
"""

import crafter
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

import expgen


class Crafter(gymnasium.Env):
    """One world per level; an episode is solved if it unlocks at least `goals` achievements."""

    def __init__(self, length: int = 10_000, goals: int = 5) -> None:
        self.length, self.goals = length, goals
        self.observation_space = Box(0, 255, (64, 64, 3), np.uint8)
        self.action_space = Discrete(crafter.Env().action_space.n)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.world = crafter.Env(length=self.length, seed=int(self.np_random.integers(2**31 - 1)))
        return self.world.reset(), {}

    def step(self, action):
        obs, reward, done, info = self.world.step(action)
        is_dead = info["discount"] == 0
        unlocked = sum(count > 0 for count in info["achievements"].values())
        return obs, float(reward), is_dead, done and not is_dead, {"is_success": unlocked >= self.goals}


expgen.register_env("crafter", Crafter)
