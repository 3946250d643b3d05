"""The quorum, the number of members that must agree: the paper's values, and scaling to other ensemble sizes.

With a quorum of k among m members, a share (k − 1) / (m − 1) of the other members must agree with the candidate
(agents.vote). This share is kept when the number of members changes, so that 1 stays 1 and m of m stays all.
"""

from numpy import ndarray

# Quorum of ten members by game, from the paper; its code has the same values except Jumper (1).
PAPER_QUORUM = {
    "maze": 6, "heist": 8, "jumper": 4, "miner": 2, "bigfish": 8, "starpilot": 1, "fruitbot": 1, "bossfight": 1,
    "plunder": 2, "caveflyer": 2, "coinrun": 1, "chaser": 2, "climber": 2, "dodgeball": 2, "leaper": 1, "ninja": 2,
}  # fmt: skip
PAPER_MEMBERS = 10


def paper_quorum(env: str, members: int) -> int:
    """Return the paper's quorum for `env`, scaled to `members`; 0 if the paper has none."""
    of_ten = PAPER_QUORUM.get(env.removeprefix("procgen:"), 0)
    return scaled_quorum(of_ten, PAPER_MEMBERS, members) if of_ten else 0


def scaled_quorum(quorum: int, of: int, members: int) -> int:
    """Scale `quorum` of `of` members to `members`: the same share of the other members, rounded to nearest."""
    share = (quorum - 1) / max(1, of - 1)
    return 1 + round(share * (members - 1))


def resized_quorum(quorum: int, of: int, members: int, env: str) -> int:
    """Scale `quorum` when an ensemble grows from `of` to `members`; 0 or the paper's stays the paper's for `env`."""
    if quorum in (0, paper_quorum(env, of)):
        return paper_quorum(env, members)
    return scaled_quorum(quorum, of, members)


def panel_quorum(quorum: int, num_members: int, size: ndarray) -> ndarray:
    """Scale `quorum` of `num_members` to panels of `size` `[n]`: the same share of the others, rounded up."""
    others = max(1, num_members - 1)
    return 1 - (-(quorum - 1) * (size - 1) // others)  # 1 + ⌈share · (n − 1)⌉


def majority(members: int) -> int:
    """Return the smallest number that is more than half of `members`."""
    return members // 2 + 1
