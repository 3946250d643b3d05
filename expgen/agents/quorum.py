"""A quorum of one ensemble as that of another: the same share of the leader's fellows."""


def scaled_quorum(quorum: int, of: int, members: int) -> int:
    """`quorum` of `of` members for `members`, to the nearest: one stays one, and all stay all."""
    share = (quorum - 1) / max(1, of - 1)
    return 1 + round(share * (members - 1))
