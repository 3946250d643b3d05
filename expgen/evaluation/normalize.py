"""Normalised scores (Table 3) and the generalisation gap (Appendix B.1)."""

import math
from typing import Literal, NamedTuple, get_args

from expgen.errors import InputError, check_choice
from expgen.paper.numbers import normalization_bounds


class Bounds(NamedTuple):
    """R_min, the score of trivial play, and R_max, the best possible score."""

    low: float
    high: float


ConstantSet = Literal["easy", "hard", "rliable"]


def _bounds(difficulty: str) -> dict[str, Bounds]:
    """Return the bounds of each game from Table 3, which has them from the authors of ProcGen."""
    return {game: Bounds(*ends) for game, ends in sorted(normalization_bounds(difficulty).items())}


_EASY, _HARD = _bounds("easy"), _bounds("hard")
CONSTANTS: dict[ConstantSet, dict[str, Bounds]] = {
    "easy": _EASY,  # used by the paper
    "hard": _HARD,
    "rliable": _EASY | {game: _HARD[game] for game in ("jumper", "leaper")},  # as rliable's notebook
}
"""A report should name its set: the mean over 16 games differs by 0.01 to 0.02 between `easy` and `rliable`."""


def normalized(score: float, game: str, constants: ConstantSet = "easy") -> float:
    """Return R_norm = (R − R_min) / (R_max − R_min) of the mean return `score`; negative if worse than trivial play."""
    check_choice("constants", constants, get_args(ConstantSet))
    bounds = CONSTANTS[constants].get(game)
    if bounds is None:
        raise InputError(f"game is {game!r}, which has no normalisation constants; accepted: {', '.join(_EASY)}")
    return (score - bounds.low) / (bounds.high - bounds.low)


def generalization_gap(train: float, test: float) -> float:
    """Return (R_emp − R_pop) / R_emp for mean returns of the game's reward or of r_I; NaN if the train score is 0.

    It is a share of the train score: 0.388 is the paper's 38.8 %. With a negative train score the sign is meaningless.
    """
    return (train - test) / train if train else math.nan
