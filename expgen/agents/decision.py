"""What a consensus agent decided, for the inspector, and how often, for the evaluation."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy import ndarray


class Actor(IntEnum):
    """Whose action was carried out."""

    LEADER = 0
    EXPLORER = 1
    RANDOM = 2


class Decision(NamedTuple):
    """One step of N environments."""

    votes: ndarray  # [M, N] int32, the members' actions; −1 for who was not asked: all while a stretch lasts
    agreed: ndarray  # [N] bool, the quorum was reached; False where nobody was asked
    actor: ndarray  # [N] int8, an Actor
    explore_steps: ndarray  # [N] int64, steps of the stretch still to come after this one


class Counts(NamedTuple):
    """How many steps were what."""

    steps: int
    votes: int  # steps in which the members were asked
    agreed: int  # steps in which the quorum was reached
    explored: int  # steps in which another than the leader acted
    stretches: int  # stretches of exploration begun

    @property
    def agreed_share(self) -> float:
        """Steps with agreement, of all steps."""
        return self.agreed / max(1, self.steps)

    @property
    def agreement_rate(self) -> float:
        """Votes that reached the quorum, of all votes."""
        return self.agreed / max(1, self.votes)

    @property
    def explored_share(self) -> float:
        """Steps of exploration, of all steps."""
        return self.explored / max(1, self.steps)

    @property
    def mean_stretch(self) -> float:
        """Steps that a stretch lasted, the end of an episode included; 0 where there was none."""
        return self.explored / max(1, self.stretches)


class Tally:
    """Counts per environment for the episode it plays, and in total.

    An episode's counts stand until its environment is acted in again, so they may be read when it has ended. Steps of
    environments that play no episode that counts (numbered below 0) are left out of the total.
    """

    def __init__(self) -> None:
        self._present = np.zeros((len(Counts._fields), 0), dtype=np.int64)  # [fields, N]
        self.reset()

    def reset(self) -> None:
        """Begin the total anew."""
        self._total = np.zeros(len(Counts._fields), dtype=np.int64)

    def record(self, decision: Decision, first: ndarray, episode: ndarray) -> None:
        """Add one step."""
        has_voted, has_explored = (decision.votes >= 0).any(0), decision.actor != Actor.LEADER  # [N]
        every = np.ones_like(has_voted)
        step = np.stack([every, has_voted, decision.agreed, has_explored, has_voted & has_explored])  # [fields, N]
        if self._present.shape != step.shape:
            self._present = np.zeros(step.shape, dtype=np.int64)
        self._present = self._present * ~np.asarray(first, dtype=bool) + step
        self._total += step[:, episode >= 0].sum(1)

    def total(self) -> Counts:
        """Since the last `reset`."""
        return Counts(*self._total.tolist())

    def of_episode(self, env: int) -> Counts:
        """The episode that environment `env` was last acted in."""
        return Counts(*self._present[:, env].tolist())
