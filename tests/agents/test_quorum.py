"""Quorums scaled to other ensemble sizes."""

import pytest

from expgen.agents.quorum import scaled_quorum


@pytest.mark.parametrize(
    ("quorum", "of", "members", "expected"),
    [(6, 10, 4, 3), (6, 10, 10, 6), (8, 10, 4, 3), (2, 10, 4, 1), (1, 10, 4, 1), (10, 10, 3, 3), (1, 1, 5, 1)],
)
def test_scaled_quorum_keeps_the_share_of_other_members(quorum: int, of: int, members: int, expected: int) -> None:
    """Six of ten is 5/9 of the nine other members; of three others that is 1.7."""
    assert scaled_quorum(quorum, of, members) == expected
