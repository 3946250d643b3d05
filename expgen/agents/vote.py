"""The vote of Algorithm 1: which actions agree, which action is voted on, and when the vote is decided.

**Agreement.** The paper requires a_i = a_j; its code compares movement directions, and its scores come from the code
(in Maze three action ids each move left and right, and independently trained members prefer different ones). Both are
available: `classes=None` makes every action its own class. An action may be in several classes: a diagonal counts for
both its directions. The class of the *candidate's* action is the first class that contains it, in the given order. A
member always agrees with itself. An action in no class (a no-op in a maze) agrees with no other vote, not even with the
same action of another member.

**Candidate**: the member whose action is executed if at least a quorum of members, itself included, agrees with it.
- `leader` (Algorithm 1): always the leader.
- `majority`: the member with whom most members agree. Ties go to the leader, then to the lowest index. So of several
  actions in the winning class, the action of the first member that voted for the class is executed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy import ndarray

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError

ActionClasses = Mapping[str, Sequence[int]]

GRID: ActionClasses = {"up": (5,), "right": (6, 7, 8), "down": (3,), "left": (0, 1, 2)}
DIRECTIONS: ActionClasses = {
    "up": (2, 5, 8),
    "right": (6, 7, 8),
    "down": (0, 3, 6),
    "left": (0, 1, 2),
    "fire": (9,),
    "else": (4, 10, 11, 12, 13, 14),
}
MINIMAZE: ActionClasses = {"up": (3,), "right": (2,), "down": (4,), "left": (1,)}
BY_NAME = {"procgen:maze": GRID, "procgen:miner": GRID, "minimaze": MINIMAZE}
_ENVPOOL_GAME = re.compile(r"envpool:(\w+?)(Easy|Hard|Extreme|Memory|Exploration)-v\d+")
_PROCGEN_ACTIONS = 15


def classes_of(spec: EnvSpec) -> ActionClasses | None:
    """Return the action classes declared by `spec` or known for its name; None if every action is its own class."""
    if spec.action_classes is not None:
        return spec.action_classes
    name = spec.name
    if spec.num_actions == _PROCGEN_ACTIONS and (task := _ENVPOOL_GAME.fullmatch(name)):
        name = f"procgen:{task[1].lower()}"
    return BY_NAME.get(name, DIRECTIONS if name.startswith("procgen:") else None)


class Panel(NamedTuple):
    """The voters of n environments."""

    is_voter: ndarray  # [M, n] bool
    leader: ndarray  # [n] the member whose action is voted on; with majority vote it breaks ties
    quorum: ndarray  # [n] number of members that must agree with the candidate, itself included


def full_panel(num_members: int, leader: int, quorum: int, env: ndarray) -> Panel:
    """Return the panel of environments `env` `[n]` in which every member votes."""
    is_voter = np.ones((num_members, len(env)), dtype=bool)
    return Panel(is_voter, np.full(len(env), leader), np.full(len(env), quorum))


class Candidate(NamedTuple):
    """The member whose action is voted on, in n environments."""

    member: ndarray  # [n]
    agree: ndarray  # [n] number of members that agree with it, itself included


class Agreement:
    """Counts the members that agree with a member's action.

    `classes` are the actions of each class by name; with None or {} every action is its own class. `no_op_is_up`
    reproduces a quirk of the paper's code: a leader's action in no class counts as "up" and is executed if enough
    *other* members go up. (A second quirk, in how members count no-ops, is not reproduced.)
    """

    def __init__(self, num_actions: int, classes: ActionClasses | None, no_op_is_up: bool = False) -> None:
        if not classes:
            classes = {str(action): (action,) for action in range(num_actions)}
        holds = np.zeros((len(classes), num_actions), dtype=bool)  # [C, A]
        for row, (name, actions) in zip(holds, classes.items()):
            if not all(0 <= action < num_actions for action in actions):
                raise InputError(f"action class {name!r} is {list(actions)}; accepted: ids in 0..{num_actions - 1}")
            row[list(actions)] = True
        has_class = np.logical_or.reduce(holds, axis=0)  # [A]
        first_class = holds.argmax(0)  # [A]
        if no_op_is_up and "up" in classes:
            first_class[~has_class] = list(classes).index("up")
            has_class[:] = True
        self.counts_for = holds[first_class] & has_class[:, None]  # [A, A] candidate's action × another member's
        self.counts_itself = self.counts_for.diagonal() | ~has_class  # [A] False only with the quirk
        self.counts_alone = self.counts_itself & ~self.counts_for.diagonal()  # [A] is in no class

    def count(self, votes: ndarray, member: int | ndarray) -> ndarray:
        """Return how many `votes` `[M, N]` (−1 for none) agree with that of `member` (one, or `[N]`), `[N]`."""
        column = np.arange(votes.shape[1])
        return self.support(votes)[votes[member, column], column]

    def support(self, votes: ndarray) -> ndarray:
        """Return how many `votes` `[M, N]` (−1 for none) agree with a vote for each action, `[A, N]`."""
        action = np.arange(len(self.counts_for))
        votes_for = (votes == action[:, None, None]).sum(1)  # [A, N]
        return self.counts_for.astype(np.int64) @ votes_for + self.counts_alone[:, None]


class VoteRule:
    """Selects the candidate of a vote and tells when it is decided.

    Votes `[M, n]` are actions, −1 if missing. The leader votes first, then the others by index.
    """

    def __init__(self, agreement: Agreement, kind: Literal["leader", "majority"]) -> None:
        self.agreement, self.is_majority = agreement, kind == "majority"
        counts_for = agreement.counts_for
        self.has_class = counts_for.any(1)  # [A]
        self.is_rival = (counts_for[:, None] != counts_for).any(2)  # [A, A] of another class

    def candidate(self, votes: ndarray, panel: Panel) -> Candidate:
        """Return the candidate; the leader must have voted."""
        return self._candidate(votes, panel, self.agreement.support(votes))

    def _candidate(self, votes: ndarray, panel: Panel, support: ndarray) -> Candidate:
        column = np.arange(votes.shape[1])
        if not self.is_majority:
            return Candidate(panel.leader, support[votes[panel.leader, column], column])
        agree = np.where(votes >= 0, support[votes, column], -1)  # [M, n]
        most = agree.max(0)
        return Candidate(np.where(agree[panel.leader, column] == most, panel.leader, agree.argmax(0)), most)

    def is_decided(self, votes: ndarray, panel: Panel) -> ndarray:
        """Return whether the remaining votes cannot change the executed action, `[n]` bool.

        This holds if no candidate can reach the quorum any more, or if one has reached it and no rival can overtake it.
        A rival can get all remaining votes; at a tie it wins only if the leader or an earlier member voted for it.
        """
        support = self.agreement.support(votes)  # [A, n]
        member, agree = self._candidate(votes, panel, support)
        index, column = np.arange(len(votes))[:, None], np.arange(votes.shape[1])
        own, remaining = votes[member, column], (panel.is_voter & (votes < 0)).sum(0)  # [n]
        may_agree = support + np.where(self.has_class[:, None], remaining, 0)  # [A, n]
        if not self.is_majority:
            return (agree >= panel.quorum) | (may_agree[own, column] < panel.quorum)
        is_rival = self.is_rival[own].T  # [A, n]
        is_before = (index == panel.leader) | (index < member) & (member != panel.leader)  # [M, n]
        is_before &= (index != member) & (votes >= 0)
        can_win = (is_rival & (may_agree > agree)).any(0)
        can_tie = (is_before & is_rival[votes, column] & (may_agree[votes, column] == agree)).any(0)
        return (may_agree < panel.quorum).all(0) | (agree >= panel.quorum) & ~can_win & ~can_tie
