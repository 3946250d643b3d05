"""Scores of different games on one scale (Table 3), and how much of a score is lost on unseen levels (Appendix B.1)."""

import math
from typing import Literal, NamedTuple, get_args

from expgen.errors import InputError, check_choice


class Bounds(NamedTuple):
    """R_min, what trivial play scores, and R_max, the most that can be had."""

    low: float
    high: float


ConstantSet = Literal["easy", "hard", "rliable"]

_EASY = {
    "bigfish": Bounds(1, 40),
    "bossfight": Bounds(0.5, 13),
    "caveflyer": Bounds(3.5, 12),
    "chaser": Bounds(0.5, 13),
    "climber": Bounds(2, 12.6),
    "coinrun": Bounds(5, 10),
    "dodgeball": Bounds(1.5, 19),
    "fruitbot": Bounds(-1.5, 32.4),
    "heist": Bounds(3.5, 10),
    "jumper": Bounds(3, 10),
    "leaper": Bounds(3, 10),
    "maze": Bounds(5, 10),
    "miner": Bounds(1.5, 13),
    "ninja": Bounds(3.5, 10),
    "plunder": Bounds(4.5, 30),
    "starpilot": Bounds(2.5, 64),
}
_HARD = {
    "bigfish": Bounds(0, 40),
    "bossfight": Bounds(0.5, 13),
    "caveflyer": Bounds(2, 13.4),
    "chaser": Bounds(0.5, 14.2),
    "climber": Bounds(1, 12.6),
    "coinrun": Bounds(5, 10),
    "dodgeball": Bounds(1.5, 19),
    "fruitbot": Bounds(-0.5, 27.2),
    "heist": Bounds(2, 10),
    "jumper": Bounds(1, 10),
    "leaper": Bounds(1.5, 10),
    "maze": Bounds(4, 10),
    "miner": Bounds(1.5, 20),
    "ninja": Bounds(2, 10),
    "plunder": Bounds(3, 30),
    "starpilot": Bounds(1.5, 35),
}
CONSTANTS: dict[ConstantSet, dict[str, Bounds]] = {
    "easy": _EASY,  # Table 3, those of ProcGen's authors; the paper's scores are normalised with these
    "hard": _HARD,  # likewise
    "rliable": _EASY | {"jumper": _HARD["jumper"], "leaper": _HARD["leaper"]},  # rliable's notebook: two hard minima
}
"""Say which set a report uses: between `easy` and `rliable` a mean over the 16 games moves by 0.01 to 0.02."""


def normalized(score: float, game: str, constants: ConstantSet = "easy") -> float:
    """R_norm = (R − R_min) / (R_max − R_min); below 0 for play worse than trivial."""
    check_choice("constants", constants, get_args(ConstantSet))
    bounds = CONSTANTS[constants].get(game)
    if bounds is None:
        raise InputError(f"game is {game!r}, which has no normalisation constants; accepted: {', '.join(_EASY)}")
    return (score - bounds.low) / (bounds.high - bounds.low)


def generalization_gap(train: float, test: float) -> float:
    """(R_emp − R_pop) / R_emp of mean returns, of the game's reward or of r_I; NaN where the train score is 0.

    A share of the train score: 0.388 is the paper's 38.8 %. Where the train score is negative the sign has no meaning.
    """
    return (train - test) / train if train else math.nan
