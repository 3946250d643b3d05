"""The paper's numbers in the package: complete, in order, and equal to those in its text."""

import pytest

from expgen.agents.quorum import PAPER_QUORUM
from expgen.envs.procgen import GAMES
from expgen.evaluation.normalize import generalization_gap
from expgen.paper import numbers


def test_games_are_in_the_order_of_the_papers_tables():
    assert sorted(numbers.games()) == sorted(GAMES)
    assert numbers.games()[:2] + numbers.games()[-2:] == ("bigfish", "starpilot", "maze", "miner")


@pytest.mark.parametrize("split", ["train", "test"])
def test_tables_1_and_2_are_complete(split):
    assert set(numbers.scores(split)) == {(method, game) for method in numbers.METHODS for game in numbers.games()}


def test_scores_match_the_papers_abstract():
    test = numbers.scores("test")
    assert (test["expgen", "maze"].mean, test["expgen", "heist"].mean, test["leep", "maze"].mean) == (8.3, 7.4, 6.6)
    assert numbers.scores("test", "50m")["expgen", "maze"].mean == 8.33


def test_cell_interval_uses_student_t():
    low, high = numbers.Cell(8.3, 0.2, 10).interval
    assert (low, high) == pytest.approx((8.157, 8.443), abs=1e-3)  # 2.262 · 0.2 / √10 = 0.143


def test_cell_prints_the_digits_of_the_paper():
    assert str(numbers.Cell(8.0, 0.12, 10)) == "8.00 ± 0.12"
    assert str(numbers.Cell(6, 1, 10)) == "6.0 ± 1.0"


def test_other_tables_of_the_paper_are_read():
    assert numbers.cells("ensemble_size", "ensemble_size")["10",].mean == 8.22
    assert numbers.ablation()["Ensemble + random", "test"].mean == 6.2
    assert numbers.cells("norm_l0_l2", "method", "game", "split")["ExpGen-L0", "heist", "test"].std == 0.1
    ranks = numbers.neighbor_ranks()
    assert sorted(ranks) == list(range(1, 11))
    gap = generalization_gap(ranks[2]["maxent_train"].mean, ranks[2]["maxent_test"].mean)
    assert gap == pytest.approx(0.077, abs=5e-4)
    assert numbers.gaps()["maxent", "maze"] == pytest.approx(0.017)


def test_default_quorums_are_the_papers():
    assert {row["game"]: int(row["k_paper"]) for row in numbers.rows("consensus_k")} == PAPER_QUORUM
