"""Quorums of one size as those of another."""

import pytest

from expgen.agents.quorum import scaled_quorum


@pytest.mark.parametrize(
    ("quorum", "of", "members", "expected"),
    [(6, 10, 4, 3), (6, 10, 10, 6), (8, 10, 4, 3), (2, 10, 4, 1), (1, 10, 4, 1), (10, 10, 3, 3), (1, 1, 5, 1)],
)
def test_the_share_of_the_leaders_fellows_stays(quorum: int, of: int, members: int, expected: int) -> None:
    """Six of ten is 5/9 of the leader's nine fellows; of three that is 1.7."""
    assert scaled_quorum(quorum, of, members) == expected
