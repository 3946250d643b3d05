"""The candidate of a vote and early decisions: by hand, and against slow references."""

import itertools
from typing import Any

import numpy as np
import pytest

from expgen.agents.vote import DIRECTIONS, GRID, ActionClasses, Agreement, Panel, VoteRule, full_panel

UP, RIGHT, RIGHT_UP, DOWN, LEFT, LEFT_UP, STAY, NO_VOTE = 5, 7, 8, 3, 1, 2, 4, -1  # of ProcGen


def panel_of(num_members: int, leader: int = 0, quorum: int = 1, num_envs: int = 1) -> Panel:
    return full_panel(num_members, leader, quorum, np.arange(num_envs))


@pytest.mark.parametrize(
    ("votes", "leader", "classes", "expected"),
    [
        ([UP, RIGHT, RIGHT, UP, RIGHT], 0, GRID, (1, 3)),  # the leader is outvoted
        ([UP, RIGHT_UP, RIGHT, UP, RIGHT], 0, GRID, (1, 3)),  # actions of one class count together
        ([UP, RIGHT_UP, RIGHT, UP, RIGHT], 4, GRID, (4, 3)),  # the leader's own action if it is in the winning class
        ([UP, RIGHT_UP, RIGHT, UP, RIGHT], 0, None, (0, 2)),  # by action: up and right have two each, the leader's wins
        ([LEFT, RIGHT, UP, UP, RIGHT], 0, GRID, (1, 2)),  # ties go to the lowest index
        ([LEFT, RIGHT, UP, UP, RIGHT], 3, GRID, (3, 2)),  # but first to the leader
        ([STAY, STAY, STAY, UP, LEFT], 0, GRID, (0, 1)),  # a no-op agrees with nothing
        ([STAY, STAY, UP, UP, STAY], 0, GRID, (2, 2)),
        ([STAY, STAY, UP, UP, STAY], 0, None, (0, 3)),
        ([UP, LEFT_UP, LEFT, LEFT], 0, DIRECTIONS, (2, 3)),  # a diagonal counts for left too, its own class is up
        ([NO_VOTE, LEFT, NO_VOTE, LEFT, UP], 4, GRID, (1, 2)),  # members outside the panel do not count
    ],
)
def test_majority_vote_by_hand(votes: list[int], leader: int, classes: ActionClasses | None, expected: tuple[int, int]):
    panel = panel_of(len(votes), leader)._replace(is_voter=np.array(votes)[:, None] >= 0)
    found = VoteRule(Agreement(15, classes), "majority").candidate(np.array(votes)[:, None], panel)
    assert (found.member.item(), found.agree.item()) == expected


def test_leader_vote_always_has_the_leader_as_candidate():
    votes = np.array([[UP], [RIGHT], [RIGHT]])
    found = VoteRule(Agreement(15, GRID), "leader").candidate(votes, panel_of(3))
    assert (found.member.item(), found.agree.item()) == (0, 1)


def slow_majority(votes: list[int], leader: int, agreement: Agreement) -> tuple[int, int]:
    """Slow reference: each member as leader, in the order that breaks ties."""
    order = [leader, *(member for member in range(len(votes)) if member != leader)]
    asked = [member for member in order if votes[member] >= 0]
    agree = {member: int(agreement.count(np.array(votes)[:, None], member)[0]) for member in asked}
    winner = max(asked, key=lambda member: agree[member])  # the first at a tie
    return winner, agree[winner]


@pytest.mark.parametrize("classes", [GRID, DIRECTIONS, None], ids=["maze", "others", "action"])
@pytest.mark.parametrize("no_op_is_up", [False, True])
def test_majority_matches_a_slow_reference(classes: ActionClasses | None, no_op_is_up: bool):
    random = np.random.default_rng(1)
    agreement = Agreement(15, classes, no_op_is_up)
    votes = random.integers(15, size=(6, 1000))
    is_voter = random.random(votes.shape) < 0.7
    leader = random.integers(6, size=1000)
    is_voter[leader, np.arange(1000)] = True
    votes = np.where(is_voter, votes, NO_VOTE)
    found = VoteRule(agreement, "majority").candidate(votes, Panel(is_voter, leader, np.full(1000, 3)))
    slow = [slow_majority(column, own, agreement) for column, own in zip(votes.T.tolist(), leader.tolist())]
    assert list(zip(found.member.tolist(), found.agree.tolist())) == slow


def test_unanimous_votes_have_the_leader_as_candidate():
    votes = np.broadcast_to(np.arange(15), (4, 15))
    panel = panel_of(4, leader=2, num_envs=15)
    agreement = Agreement(15, GRID)
    leaders, majority = (VoteRule(agreement, kind).candidate(votes, panel) for kind in ("leader", "majority"))
    assert np.array_equal(leaders.member, majority.member) and np.array_equal(leaders.agree, majority.agree)


FEW = 4  # actions and members of the enumeration: a class of two, a class of one, an action in no class
APART: ActionClasses = {"up": (0, 1), "left": (2,)}
OVERLAPPING: ActionClasses = {"up": (0, 1), "left": (1, 2)}


def outcomes(rule: VoteRule, votes: tuple[int, ...], panel: Panel) -> set[tuple[int, int] | None]:
    """Return the outcomes, member and action or none, of all combinations of the remaining votes."""
    open_seats = [member for member, vote in enumerate(votes) if vote < 0]
    ends = list(itertools.product(range(FEW), repeat=len(open_seats)))
    cast = np.repeat(np.array(votes)[:, None], len(ends), axis=1)
    cast[open_seats] = np.array(ends).reshape(len(ends), -1).T
    leader, quorum = panel.leader.item(), panel.quorum.item()
    found = rule.candidate(cast, panel_of(len(votes), leader, quorum, len(ends)))
    member, agree = found.member.tolist(), found.agree.tolist()
    return {(m, int(cast[m, end])) if n >= quorum else None for end, (m, n) in enumerate(zip(member, agree))}


@pytest.mark.parametrize("kind", ["leader", "majority"])
@pytest.mark.parametrize(("classes", "is_exact"), [(APART, True), (None, True), (OVERLAPPING, False)])
@pytest.mark.parametrize("leader", [0, 2])
def test_is_decided_matches_enumeration_of_remaining_votes(
    kind: Any, classes: ActionClasses, is_exact: bool, leader: int
):
    """All votes of four members, after any number of votes; without overlapping classes the stop is not late."""
    rule = VoteRule(Agreement(FEW, classes), kind)
    order = [leader, *(member for member in range(FEW) if member != leader)]
    seen = set()
    for quorum, asked in itertools.product(range(1, FEW + 2), range(1, FEW)):
        for cast in itertools.product(range(FEW), repeat=asked):
            votes = dict(zip(order, cast))
            row = tuple(votes.get(member, NO_VOTE) for member in range(FEW))
            panel = panel_of(FEW, leader, quorum)
            is_decided = bool(rule.is_decided(np.array(row)[:, None], panel)[0])
            is_settled = len(outcomes(rule, row, panel)) == 1
            seen.add(is_settled)
            assert is_settled if is_decided else not (is_exact and is_settled), (row, quorum)
    assert seen == {True, False}
