"""Scores of different games on one scale (Table 3), and how much of a score is lost on unseen levels (Appendix B.1)."""

import math
from typing import Literal, NamedTuple, get_args

from expgen.errors import InputError, check_choice
from expgen.paper.numbers import normalization_bounds


class Bounds(NamedTuple):
    """R_min, what trivial play scores, and R_max, the most that can be had."""

    low: float
    high: float


ConstantSet = Literal["easy", "hard", "rliable"]

_EASY, _HARD = (
    {game: Bounds(*ends) for game, ends in sorted(normalization_bounds(difficulty).items())}
    for difficulty in ("easy", "hard")
)  # Table 3: those of ProcGen's authors
CONSTANTS: dict[ConstantSet, dict[str, Bounds]] = {
    "easy": _EASY,  # the paper's scores are normalised with these
    "hard": _HARD,
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
