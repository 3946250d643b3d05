"""Out-of-bag voting: on each level only the members that did not train on it vote."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from expgen.agents.quorum import panel_quorum
from expgen.agents.vote import Panel
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import Observation


class OutOfBag:
    """Panels of the members that did not train on the current level; the leader changes from episode to episode."""

    def __init__(self, trained_on: Sequence[LevelSet], levels: LevelSet, quorum: int) -> None:
        """`trained_on` are each member's training levels, `levels` those to play; `quorum` is that of all members."""
        assert levels.seeds is not None
        self.levels = np.sort(np.asarray(levels.seeds, dtype=np.int64))  # [L]
        self.is_unseen = np.array(
            [[level not in own for level in self.levels.tolist()] for own in trained_on]
        )  # [M, L]
        self.quorum = quorum
        self.level = self.episode = np.zeros(0, dtype=np.int64)  # [N]

    def watch(self, observation: Observation, episode: ndarray) -> None:
        """Record the current levels and episodes; call this before each step."""
        self.level, self.episode = observation.level.astype(np.int64), np.maximum(episode, 0)

    def __call__(self, env: ndarray) -> Panel:
        is_voter = self.is_unseen[:, np.searchsorted(self.levels, self.level[env])]  # [M, n]
        size = is_voter.sum(0)
        turn = 1 + self.episode[env] % size  # [n] the turn-th member of the panel leads
        leader = (is_voter.cumsum(0) == turn).argmax(0)
        return Panel(is_voter, leader, panel_quorum(self.quorum, len(is_voter), size))


def panel_levels(trained_on: Sequence[LevelSet], levels: LevelSet) -> LevelSet:
    """Return the levels on which at least two members did not train; agreement needs two."""
    assert levels.seeds is not None
    unseen = (level for level in levels.seeds if sum(level not in own for own in trained_on) >= 2)
    return LevelSet(tuple(unseen))
