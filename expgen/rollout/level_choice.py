"""Which levels the games of a learner play, where the environment's own draw will not do: level replay, level subsets.

The one loop back from learning to playing. A chooser names levels; the Director tells the environment, through its
LevelControl, whenever an episode begins and before anyone has seen it.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy import ndarray

from expgen.envs.vec_env import LevelControl, Observation, VecEnv
from expgen.errors import InputError
from expgen.rollout.rollout import Rollout


class LevelChooser(Protocol):
    """Names levels; all it knows of the games is their number."""

    def choose(self, env: ndarray) -> ndarray:
        """The level that each environment in `env` `[E]` shall play now, `[E]`; the first call asks for all of them."""

    def learn(self, rollout: Rollout) -> None:
        """Take note of a rollout that has its advantages and not yet been learnt from."""

    def summary(self) -> dict[str, float]:
        """Metrics of the levels."""

    def state(self) -> dict[str, ndarray]: ...

    def load_state(self, state: Mapping[str, ndarray]) -> None: ...


class Director:
    """Sends every episode that begins to the level its chooser names, once."""

    def __init__(self, env: VecEnv, chooser: LevelChooser) -> None:
        if not isinstance(env, LevelControl):
            accepted = "minimaze, gymnasium:ID, or procgen without generated assets"
            raise InputError(f"--env {env.spec.name} cannot be sent to a level; accepted for this --algo: {accepted}")
        self.env, self.chooser = env, chooser
        self.assigned = np.full(env.num_envs, -1)  # [N] the level each game was last sent to; −1 before the first

    def direct(self, observation: Observation, is_new: bool) -> None:
        """Send the episodes that begin with `observation`, a view that the environment rewrites in place.

        The observation that ends a rollout opens the next one: the second time it is not new, and only games that
        play what nobody chose are sent, as all do when a run starts.
        """
        begins = observation.first & (is_new | (observation.level != self.assigned))
        if begins.any():
            env = np.flatnonzero(begins)
            level = self.chooser.choose(env)
            for one, its_level in zip(env.tolist(), level.tolist()):
                self.env.play(one, its_level)
            self.assigned[env] = level

    def state(self) -> dict[str, ndarray]:
        """The chooser's, and who was sent where."""
        return {**self.chooser.state(), "assigned": self.assigned}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        """Continue from `state`."""
        self.chooser.load_state(state)
        self.assigned[:] = state["assigned"]
