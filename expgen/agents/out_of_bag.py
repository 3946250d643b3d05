"""Out of bag: on each level only the members that did not train on it vote."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from expgen.agents.quorum import panel_quorum
from expgen.agents.vote import Panel
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import Observation


class OutOfBag:
    """Panels of the members that have not seen the level being played; the members of a panel lead in turn.

    The quorum of the whole ensemble asks the same share of a panel (agents.quorum).
    """

    def __init__(self, seen: Sequence[LevelSet], levels: LevelSet, quorum: int) -> None:
        assert levels.seeds is not None
        self.levels = np.sort(np.asarray(levels.seeds, dtype=np.int64))  # [L]
        self.is_unseen = np.array([[level not in own for level in self.levels.tolist()] for own in seen])  # [M, L]
        self.quorum = quorum
        self.level = self.episode = np.zeros(0, dtype=np.int64)  # [N]

    def watch(self, observation: Observation, episode: ndarray) -> None:
        """What the environments play now; to be told before each step."""
        self.level, self.episode = observation.level.astype(np.int64), np.maximum(episode, 0)

    def __call__(self, env: ndarray) -> Panel:
        sits = self.is_unseen[:, np.searchsorted(self.levels, self.level[env])]  # [M, n]
        size = sits.sum(0)
        turn = 1 + self.episode[env] % size  # [n] the leader is the panel's turn-th
        leader = (sits.cumsum(0) == turn).argmax(0)
        return Panel(sits, leader, panel_quorum(self.quorum, len(sits), size))


def panel_levels(seen: Sequence[LevelSet], levels: LevelSet) -> LevelSet:
    """The levels unseen by two members or more: with fewer there is nobody to agree."""
    assert levels.seeds is not None
    unseen = (level for level in levels.seeds if sum(level not in own for own in seen) >= 2)
    return LevelSet(tuple(unseen))
