"""Whose action the members vote on, and when the votes still to come cannot change the decision.

- `leader` (Algorithm 1): always the leader's action, whatever the others would rather do.
- `majority`: the action of the member with whom most members agree, counted as they are for a leader
  (agents.agreement). Of members with equally many the leader comes first, then the lowest index. So where actions of
  one effect count together, the action carried out is that of the first member that voted for the winning effect.

Either way the action is carried out if at least as many as the quorum agree with it, the member itself included.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy import ndarray

from expgen.agents.agreement import Agreement
from expgen.agents.panel import Panel


class Candidate(NamedTuple):
    """The member whose action is carried out if enough agree with it, in n environments."""

    member: ndarray  # [n]
    agree: ndarray  # [n] how many agree, itself included


class VoteRule(Protocol):
    """`votes` `[M, n]` are actions, −1 for members that do not sit in the panel or were not asked yet."""

    def candidate(self, votes: ndarray, panel: Panel) -> Candidate:
        """Whose action the votes are about; the leader must have been asked."""

    def is_decided(self, votes: ndarray, panel: Panel) -> ndarray:
        """Whether no vote still to come could change what is done, `[n]`.

        Members are asked in one order: the leader, then the others by index.
        """


class LeaderVote:
    """The leader's action is voted on."""

    def __init__(self, agreement: Agreement) -> None:
        self.agreement = agreement

    def candidate(self, votes: ndarray, panel: Panel) -> Candidate:
        return Candidate(panel.leader, self.agreement.count(votes, panel.leader))

    def is_decided(self, votes: ndarray, panel: Panel) -> ndarray:
        agree = self.agreement.count(votes, panel.leader)
        own = votes[panel.leader, np.arange(votes.shape[1])]
        may_agree = np.where(self.agreement.counts_for[own].any(1), _num_to_come(votes, panel), 0)
        return (agree >= panel.quorum) | (agree + may_agree < panel.quorum)


class MajorityVote:
    """The action that most members agree with is voted on."""

    def __init__(self, agreement: Agreement) -> None:
        self.agreement = agreement
        counts_for = agreement.counts_for
        self.has_class = counts_for.any(1)  # [A]
        self.is_rival = (counts_for[:, None] != counts_for).any(2)  # [A, A] of another class

    def candidate(self, votes: ndarray, panel: Panel) -> Candidate:
        column = np.arange(votes.shape[1])
        agree = np.where(votes >= 0, self.agreement.support(votes)[votes, column], -1)  # [M, n]
        most = agree.max(0)
        return Candidate(np.where(agree[panel.leader, column] == most, panel.leader, agree.argmax(0)), most)

    def is_decided(self, votes: ndarray, panel: Panel) -> ndarray:
        """No action can reach the quorum, or the candidate has it and no rival can come before it.

        A rival may get every vote still to come. With as many as the candidate it comes before it only if a member
        asked earlier than the candidate voted for it: who is asked later comes later.
        """
        member, agree = self.candidate(votes, panel)
        index, column = np.arange(len(votes))[:, None], np.arange(votes.shape[1])
        to_come = np.where(self.has_class[:, None], _num_to_come(votes, panel), 0)
        may_agree = self.agreement.support(votes) + to_come  # [A, n]
        is_rival = self.is_rival[votes[member, column]].T  # [A, n]
        is_before = (index == panel.leader) | (index < member) & (member != panel.leader)  # [M, n]
        is_before &= (index != member) & (votes >= 0)
        can_win = (is_rival & (may_agree > agree)).any(0)
        can_tie = (is_before & is_rival[votes, column] & (may_agree[votes, column] == agree)).any(0)
        return (may_agree < panel.quorum).all(0) | (agree >= panel.quorum) & ~can_win & ~can_tie


def _num_to_come(votes: ndarray, panel: Panel) -> ndarray:
    """Votes still to come, `[n]`."""
    return (panel.sits & (votes < 0)).sum(0)
