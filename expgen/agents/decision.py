"""What a consensus agent decided, for the inspector, and how often, for the evaluation."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy import ndarray


class Actor(IntEnum):
    """Whose action was carried out."""

    MEMBER = 0
    EXPLORER = 1
    RANDOM = 2


class Decision(NamedTuple):
    """One step of N environments."""

    votes: ndarray  # [M, N] int32, the members' actions; −1 for who was not asked: all while a stretch lasts
    candidate: ndarray  # [N] int64, the member whose action was voted on; −1 where nobody was asked
    agreed: ndarray  # [N] bool, the quorum was reached; False where nobody was asked
    set_aside: ndarray  # [N] bool, it was reached on a frame on which the ensemble had acted, and did not count
    actor: ndarray  # [N] int8, an Actor
    explore_steps: ndarray  # [N] int64, steps of the stretch still to come after this one
    hedged: ndarray  # [N] bool, the members objected to the explorer's action and it took another


@dataclass
class Counts:
    """How many steps were what so far, without those of environments that play no episode that counts (below 0)."""

    steps: int = 0
    votes: int = 0  # steps in which the members were asked
    agreed: int = 0  # steps in which the quorum was reached
    set_aside: int = 0  # of these, the steps on frames on which the ensemble had acted before
    explored: int = 0  # steps in which no member acted
    stretches: int = 0  # stretches of exploration begun
    hedged: int = 0  # steps of exploration in which the members objected to an action and another was taken
    deaths: int = 0  # episodes that ended neither in success nor by the time limit
    explorer_deaths: int = 0  # of these, the ones whose last action was not a member's
    has_explored: ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool), compare=False, repr=False)
    """[N], in the last step."""

    @property
    def agreement_rate(self) -> float:
        """Votes that reached the quorum, of all votes."""
        return self.agreed / max(1, self.votes)

    @property
    def set_aside_share(self) -> float:
        """Votes set aside, of those that reached the quorum."""
        return self.set_aside / max(1, self.agreed)

    @property
    def explored_share(self) -> float:
        """Steps of exploration, of all steps."""
        return self.explored / max(1, self.steps)

    @property
    def hedged_share(self) -> float:
        """Steps in which the explorer took another action, of the steps of exploration."""
        return self.hedged / max(1, self.explored)

    @property
    def mean_stretch(self) -> float:
        """Steps that a stretch lasted, the end of an episode included; 0 where there was none."""
        return self.explored / max(1, self.stretches)

    def record(self, decision: Decision, episode: ndarray) -> None:
        """Add one step; `episode` `[N]` as agents are told it."""
        counts = episode >= 0  # [N]
        has_voted, self.has_explored = (decision.votes >= 0).any(0), decision.actor != Actor.MEMBER  # [N]
        self.steps += int(counts.sum())
        self.votes += int((has_voted & counts).sum())
        self.agreed += int((decision.agreed & counts).sum())
        self.set_aside += int((decision.set_aside & counts).sum())
        self.explored += int((self.has_explored & counts).sum())
        self.stretches += int((has_voted & self.has_explored & counts).sum())
        self.hedged += int((decision.hedged & counts).sum())

    def record_deaths(self, died: ndarray) -> None:
        """Add the episodes that the last step ended in death, `[N]`; those that count for nothing are left out."""
        self.deaths += int(died.sum())
        self.explorer_deaths += int((died & self.has_explored).sum())
