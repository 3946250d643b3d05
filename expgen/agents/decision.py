"""Decisions of a consensus agent: one step in detail for the inspector, and counts over an evaluation."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from numpy import ndarray


class Actor(IntEnum):
    """Whose action was executed."""

    MEMBER = 0
    EXPLORER = 1
    RANDOM = 2


class Decision(NamedTuple):
    """One step of N environments with M members."""

    votes: ndarray  # [M, N] int32, the members' actions; −1 if not evaluated, as all are during a stretch
    candidate: ndarray  # [N] int64, the member whose action was voted on; −1 without a vote
    agreed: ndarray  # [N] bool, the quorum was reached; False without a vote
    set_aside: ndarray  # [N] bool, reached on a frame on which the ensemble had acted before, so it did not count
    actor: ndarray  # [N] int8, an Actor
    explore_steps: ndarray  # [N] int64, remaining steps of the stretch after this one
    hedged: ndarray  # [N] bool, the explorer's action was replaced because the members object to it


@dataclass
class Counts:
    """Counts of steps so far; environments with a negative episode number are excluded."""

    steps: int = 0
    votes: int = 0  # steps with a vote
    agreed: int = 0  # steps in which the quorum was reached
    set_aside: int = 0  # of these, steps on frames on which the ensemble had acted before
    explored: int = 0  # steps in which the explorer or a random action was used
    stretches: int = 0  # stretches of exploration started
    hedged: int = 0  # steps of exploration in which the action was replaced because the members object to it

    @property
    def agreement_rate(self) -> float:
        """Share of votes that reached the quorum."""
        return self.agreed / max(1, self.votes)

    @property
    def set_aside_share(self) -> float:
        """Share of the votes that reached the quorum which were set aside."""
        return self.set_aside / max(1, self.agreed)

    @property
    def explored_share(self) -> float:
        """Share of steps of exploration among all steps."""
        return self.explored / max(1, self.steps)

    @property
    def hedged_share(self) -> float:
        """Share of hedged steps among the steps of exploration."""
        return self.hedged / max(1, self.explored)

    @property
    def mean_stretch(self) -> float:
        """Mean number of steps of a stretch, counting those cut off by the end of an episode; 0 if there was none."""
        return self.explored / max(1, self.stretches)

    def record(self, decision: Decision, episode: ndarray) -> None:
        """Add one step; `episode` `[N]` as in `Agent.act`."""
        is_counted = episode >= 0  # [N]
        has_voted, has_explored = (decision.votes >= 0).any(0), decision.actor != Actor.MEMBER  # [N]
        self.steps += int(is_counted.sum())
        self.votes += int((has_voted & is_counted).sum())
        self.agreed += int((decision.agreed & is_counted).sum())
        self.set_aside += int((decision.set_aside & is_counted).sum())
        self.explored += int((has_explored & is_counted).sum())
        self.stretches += int((has_voted & has_explored & is_counted).sum())
        self.hedged += int((decision.hedged & is_counted).sum())
