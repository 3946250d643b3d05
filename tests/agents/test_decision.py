"""Counts of a consensus agent's decisions."""

import numpy as np
import pytest

from expgen.agents.decision import Actor, Counts, Decision

NOBODY = -1


def decide(
    votes: list[list[int]],
    agreed: list[bool],
    actor: list[int],
    set_aside: list[bool] | None = None,
    hedged: list[bool] | None = None,
) -> Decision:
    zeros = np.zeros(len(agreed), dtype=np.int64)
    aside = np.array(set_aside) if set_aside else zeros.astype(bool)
    who = np.array(actor, dtype=np.int8)
    return Decision(
        np.array(votes),
        zeros,
        np.array(agreed),
        aside,
        who,
        zeros,
        np.array(zeros if hedged is None else hedged, dtype=bool),
    )


def test_tally_counts_by_hand():
    tally = Counts()
    votes = [[1, 1], [1, -1], [2, 1]]  # of member 0
    agreed = [[True, False], [False, False], [True, True]]
    actor = [[0, 1], [1, 1], [0, 0]]
    for t in range(3):
        tally.record(decide([votes[t]], agreed[t], actor[t]), np.array([7 + (t == 2), -1 if t == 2 else 3]))
    # the last step of environment 1 has a negative episode number
    assert tally == Counts(steps=5, votes=4, agreed=2, set_aside=0, explored=3, stretches=2)
    assert (tally.agreement_rate, tally.explored_share, tally.mean_stretch) == (0.5, 0.6, 1.5)


@pytest.mark.parametrize(
    "share", ["agreement_rate", "set_aside_share", "explored_share", "mean_stretch", "hedged_share"]
)
def test_shares_are_zero_without_steps(share: str):
    assert getattr(Counts(), share) == 0


def test_stretch_starts_at_a_vote_without_agreement():
    """Three steps of one stretch, with a vote only at the first."""
    tally = Counts()
    for vote in (2, NOBODY, NOBODY):
        tally.record(decide([[vote], [vote]], [False], [Actor.EXPLORER]), np.array([0]))
    assert tally == Counts(steps=3, votes=1, agreed=0, set_aside=0, explored=3, stretches=1)
    assert (tally.mean_stretch, tally.explored_share, tally.agreement_rate) == (3, 1, 0)


def test_consensus_set_aside_is_counted_and_starts_a_stretch():
    tally = Counts()
    actor = [Actor.MEMBER, Actor.EXPLORER, Actor.EXPLORER]
    tally.record(decide([[1, 1, 1]], [True, True, False], actor, [False, True, False]), np.arange(3))
    assert tally == Counts(steps=3, votes=3, agreed=2, set_aside=1, explored=2, stretches=2)
    assert tally.set_aside_share == 0.5


def test_hedged_steps_are_counted():
    tally = Counts()
    actor = [Actor.MEMBER, Actor.EXPLORER, Actor.EXPLORER]
    tally.record(decide([[1, 1, 1]], [True, False, False], actor, hedged=[False, True, False]), np.arange(3))
    assert (tally.hedged, tally.hedged_share) == (1, 0.5)


def test_one_evaluated_member_is_a_vote_and_random_actions_count_as_exploration():
    tally = Counts()
    tally.record(decide([[NOBODY], [1]], [False], [Actor.RANDOM]), np.array([0]))
    assert tally == Counts(steps=1, votes=1, agreed=0, set_aside=0, explored=1, stretches=1)


def test_counts_accept_a_changed_number_of_environments():
    tally = Counts()
    for num_envs in (2, 3):
        tally.record(decide([[1] * num_envs], [True] * num_envs, [Actor.MEMBER] * num_envs), np.arange(num_envs))
    assert tally.steps == 5
