"""Every rule of how many members must agree: the paper's numbers, and what a quorum means for another ensemble.

A quorum of k among m members means that a share (k − 1) / (m − 1) of the others agree with the member whose action it
is. That share is what is kept where the number of members changes, so that one stays one and all stay all.
"""

from numpy import ndarray

# Members that must agree, by game (of ten); the paper's, which differ from its code's in Jumper alone (1 there).
PAPER_QUORUM = {
    "maze": 6, "heist": 8, "jumper": 4, "miner": 2, "bigfish": 8, "starpilot": 1, "fruitbot": 1, "bossfight": 1,
    "plunder": 2, "caveflyer": 2, "coinrun": 1, "chaser": 2, "climber": 2, "dodgeball": 2, "leaper": 1, "ninja": 2,
}  # fmt: skip
PAPER_MEMBERS = 10


def paper_quorum(env: str, members: int) -> int:
    """The paper's quorum of ten for `members` of them; 0 where the paper has none for `env`."""
    of_ten = PAPER_QUORUM.get(env.removeprefix("procgen:"), 0)
    return scaled_quorum(of_ten, PAPER_MEMBERS, members) if of_ten else 0


def scaled_quorum(quorum: int, of: int, members: int) -> int:
    """`quorum` of `of` members for `members`: the same share of the others, to the nearest."""
    share = (quorum - 1) / max(1, of - 1)
    return 1 + round(share * (members - 1))


def resized_quorum(quorum: int, of: int, members: int, env: str) -> int:
    """`quorum` of `of` members after an ensemble on `env` has become `members` large; 0 is more than half.

    Where it was the paper's, or none, it is the paper's again; else its share stays.
    """
    if quorum in (0, paper_quorum(env, of)):
        return paper_quorum(env, members)
    return scaled_quorum(quorum, of, members)


def panel_quorum(quorum: int, num_members: int, size: ndarray) -> ndarray:
    """What `quorum` of `num_members` asks of panels of `size` `[n]`: at least the same share of the others."""
    others = max(1, num_members - 1)
    return 1 - (-(quorum - 1) * (size - 1) // others)  # 1 + ⌈share · (n − 1)⌉


def majority(members: int) -> int:
    """The least that is more than half of `members`."""
    return members // 2 + 1
