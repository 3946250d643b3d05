"""Table 3 and the generalisation gap."""

import math

import pytest

from expgen.envs.procgen import GAMES
from expgen.errors import InputError
from expgen.evaluation.normalize import CONSTANTS, generalization_gap, normalized


def test_every_constant_set_has_every_game():
    for constants in CONSTANTS.values():
        assert sorted(constants) == sorted(GAMES)


def test_bounds_of_three_games_match_table_3():
    assert (CONSTANTS["easy"]["maze"], CONSTANTS["hard"]["maze"]) == ((5, 10), (4, 10))
    assert (CONSTANTS["easy"]["fruitbot"], CONSTANTS["hard"]["fruitbot"]) == ((-1.5, 32.4), (-0.5, 27.2))
    assert (CONSTANTS["easy"]["starpilot"], CONSTANTS["hard"]["starpilot"]) == ((2.5, 64), (1.5, 35))


def test_normalised_scores_by_hand():
    assert normalized(8.3, "maze") == pytest.approx(0.66)
    assert normalized(2.4, "heist") < 0  # worse than trivial play, like PPO in the paper
    assert normalized(5.8, "jumper") == pytest.approx(0.4)
    assert normalized(5.5, "jumper", "rliable") == pytest.approx(0.5)
    assert normalized(20.0, "starpilot", "hard") == pytest.approx(18.5 / 33.5)


def test_easy_and_rliable_constants_differ_in_two_games():
    easy, rliable = CONSTANTS["easy"], CONSTANTS["rliable"]
    other = {game: rliable[game] for game in GAMES if rliable[game] != easy[game]}
    assert other == {"jumper": (1, 10), "leaper": (1.5, 10)}


PPO_TEST = {  # the paper's test scores of PPO, 25M steps
    "bigfish": 2.9,
    "bossfight": 7.4,
    "caveflyer": 5.5,
    "chaser": 3.1,
    "climber": 5.4,
    "coinrun": 8.6,
    "dodgeball": 2.2,
    "fruitbot": 26.2,
    "heist": 2.4,
    "jumper": 5.8,
    "leaper": 4.9,
    "maze": 5.6,
    "miner": 7.8,
    "ninja": 6.1,
    "plunder": 7.8,
    "starpilot": 24.9,
}


def test_normalised_paper_scores_have_the_published_mean():
    """The mean is 0.313 with the easy constants; the rliable constants change it by 0.01 to 0.02."""
    mean = {name: sum(normalized(PPO_TEST[game], game, name) for game in GAMES) / 16 for name in CONSTANTS}
    assert round(mean["easy"], 3) == 0.313
    assert 0.01 < mean["rliable"] - mean["easy"] < 0.02


def test_unknown_games_and_constants_are_rejected():
    with pytest.raises(InputError, match="game is 'minimaze', which has no normalisation constants; accepted: bigfish"):
        normalized(1.0, "minimaze")
    with pytest.raises(InputError, match="constants is 'medium'; accepted: easy, hard, rliable"):
        normalized(1.0, "maze", "medium")  # type: ignore[arg-type]


def test_generalisation_gap_by_hand():
    assert generalization_gap(8.0, 6.0) == 0.25
    assert generalization_gap(4.0, 5.0) == -0.25
    assert math.isnan(generalization_gap(0.0, 1.0))
