"""The vote of Algorithm 1: who agrees with whom, whose action is voted on, and when it is decided.

**Agreement.** The paper asks for a_i = a_j; its code compares movement directions, which is what its scores come from
(in Maze three ids each go left and right, and members trained apart settle on different ones). Both are here:
`classes=None` makes every action a class of its own. An action may stand in several classes: a diagonal counts for both
its directions. The class of the *candidate's* action is the first that holds it, in the order written. A member always
agrees with itself; an action that stands in no class (standing still in a maze) agrees with nothing else, not even with
the same action of another member.

**Candidate**, the member whose action is carried out if at least as many as the quorum agree with it, itself included:
- `leader` (Algorithm 1): always the leader, whatever the others would rather do.
- `majority`: the member with whom most agree. Of equals the leader comes first, then the lowest index. So where actions
  of one effect count together, what is carried out is the action of the first member that voted for the winning effect.
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
    """What the environment declares, else what we know of it, else None: each action a class of its own."""
    if spec.action_classes is not None:
        return spec.action_classes
    name = spec.name
    if spec.num_actions == _PROCGEN_ACTIONS and (task := _ENVPOOL_GAME.fullmatch(name)):
        name = f"procgen:{task[1].lower()}"
    return BY_NAME.get(name, DIRECTIONS if name.startswith("procgen:") else None)


class Panel(NamedTuple):
    """The voters of n environments."""

    sits: ndarray  # [M, n] bool, who is asked
    leader: ndarray  # [n] whose action is voted on; with the majority's vote it comes first among equals
    quorum: ndarray  # [n] how many must agree, the member whose action it is included


def everyone(num_members: int, leader: int, quorum: int, env: ndarray) -> Panel:
    """The panel of environments `env` `[n]` where every member votes, under one leader."""
    sits = np.ones((num_members, len(env)), dtype=bool)
    return Panel(sits, np.full(len(env), leader), np.full(len(env), quorum))


class Candidate(NamedTuple):
    """The member whose action is voted on, in n environments."""

    member: ndarray  # [n]
    agree: ndarray  # [n] how many agree with it, itself included


class Agreement:
    """Counts the members whose action is as good as another's, that one included.

    `no_op_is_up` is a quirk of the paper's code: a leader's action outside all classes is taken for "up" and carried
    out if enough *others* go up. (Its second quirk, members that miscount standing still, is not kept.)
    """

    def __init__(self, num_actions: int, classes: ActionClasses | None, no_op_is_up: bool = False) -> None:
        if classes is None:
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
        self.counts_itself = self.counts_for.diagonal() | ~has_class  # [A] all, but for the quirk's
        self.counts_alone = self.counts_itself & ~self.counts_for.diagonal()  # [A] stands in no class

    def count(self, votes: ndarray, member: int | ndarray) -> ndarray:
        """`votes` `[M, N]` actions, −1 for none → how many agree with `member` (or `[N]` of them), `[N]`."""
        column = np.arange(votes.shape[1])
        return self.support(votes)[votes[member, column], column]

    def support(self, votes: ndarray) -> ndarray:
        """`votes` `[M, N]` actions, −1 for none → how many agree with a member that votes for each action, `[A, N]`."""
        action = np.arange(len(self.counts_for))
        votes_for = (votes == action[:, None, None]).sum(1)  # [A, N]
        return self.counts_for.astype(np.int64) @ votes_for + self.counts_alone[:, None]


class Vote:
    """Votes `[M, n]` are actions, −1 for members that do not sit in the panel or were not asked yet.

    Members are asked in one order: the leader, then the others by index.
    """

    def __init__(self, agreement: Agreement, kind: Literal["leader", "majority"]) -> None:
        self.agreement, self.is_majority = agreement, kind == "majority"
        counts_for = agreement.counts_for
        self.has_class = counts_for.any(1)  # [A]
        self.is_rival = (counts_for[:, None] != counts_for).any(2)  # [A, A] of another class

    def candidate(self, votes: ndarray, panel: Panel) -> Candidate:
        """Whose action the votes are about; the leader must have been asked."""
        return self._candidate(votes, panel, self.agreement.support(votes))

    def _candidate(self, votes: ndarray, panel: Panel, support: ndarray) -> Candidate:
        column = np.arange(votes.shape[1])
        if not self.is_majority:
            return Candidate(panel.leader, support[votes[panel.leader, column], column])
        agree = np.where(votes >= 0, support[votes, column], -1)  # [M, n]
        most = agree.max(0)
        return Candidate(np.where(agree[panel.leader, column] == most, panel.leader, agree.argmax(0)), most)

    def is_decided(self, votes: ndarray, panel: Panel) -> ndarray:
        """Whether no vote still to come could change what is done, `[n]`.

        That is where no candidate can reach the quorum any more, or where one has it and no rival can come before it. A
        rival may get every vote still to come; with as many as the candidate it comes before it only if a member asked
        earlier voted for it.
        """
        support = self.agreement.support(votes)  # [A, n]
        member, agree = self._candidate(votes, panel, support)
        index, column = np.arange(len(votes))[:, None], np.arange(votes.shape[1])
        own, to_come = votes[member, column], (panel.sits & (votes < 0)).sum(0)  # [n]
        may_agree = support + np.where(self.has_class[:, None], to_come, 0)  # [A, n]
        if not self.is_majority:
            return (agree >= panel.quorum) | (may_agree[own, column] < panel.quorum)
        is_rival = self.is_rival[own].T  # [A, n]
        is_before = (index == panel.leader) | (index < member) & (member != panel.leader)  # [M, n]
        is_before &= (index != member) & (votes >= 0)
        can_win = (is_rival & (may_agree > agree)).any(0)
        can_tie = (is_before & is_rival[votes, column] & (may_agree[votes, column] == agree)).any(0)
        return (may_agree < panel.quorum).all(0) | (agree >= panel.quorum) & ~can_win & ~can_tie
