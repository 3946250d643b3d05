"""Choosing the training levels where they are not sampled uniformly: level replay, subsets (LEEP).

A LevelChooser picks levels; whenever an episode begins, the Director sets the environment to the chosen level, through
its LevelControl, before the policy sees the observation.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy import ndarray

from expgen.envs.vec_env import LevelControl, Observation, VecEnv
from expgen.errors import InputError
from expgen.rollout.rollout import Rollout


class LevelChooser(ABC):
    """Picks the level of each new episode."""

    @abstractmethod
    def choose(self, env: ndarray) -> ndarray:
        """Return the level `[E]` that each environment of `env` `[E]` plays next; the first call asks for all N."""

    def learn(self, rollout: Rollout) -> None:
        """Hook called with each rollout whose advantages are computed, before the algorithm's update."""
        return

    def summary(self) -> dict[str, float]:
        """Return metrics about the levels."""
        return {}

    @abstractmethod
    def state(self) -> dict[str, ndarray]: ...

    @abstractmethod
    def load_state(self, state: Mapping[str, ndarray]) -> None: ...


class Director:
    """Sets each new episode, once, to the level that the chooser picks."""

    def __init__(self, env: VecEnv, chooser: LevelChooser) -> None:
        if not isinstance(env, LevelControl):
            accepted = "minimaze, gymnasium:ID, or procgen without generated assets"
            what = f"--env is {env.spec.name}, which cannot set levels as --algo or --level-replay asks"
            raise InputError(f"{what}; accepted: {accepted}")
        self.env, self.chooser = env, chooser
        self.assigned = np.full(env.num_envs, -1)  # [N] level chosen last for each environment; −1: none yet

    def direct(self, observation: Observation, is_new: bool) -> None:
        """Set the level of the episodes that begin with `observation`, which the environment updates in place.

        The last observation of a rollout is also the first of the next one, which passes `is_new=False`: then only
        environments that do not play their chosen level yet are set. At the start of a run, these are all of them.
        """
        begins = observation.first & (is_new | (observation.level != self.assigned))
        if begins.any():
            env = np.flatnonzero(begins)
            level = self.chooser.choose(env)
            for index, chosen in zip(env.tolist(), level.tolist()):
                self.env.play(index, chosen)
            self.assigned[env] = level

    def state(self) -> dict[str, ndarray]:
        return {**self.chooser.state(), "assigned": self.assigned}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        self.chooser.load_state(state)
        self.assigned[:] = state["assigned"]
