"""Statistics on the paper's Table 1, on hand-computed numbers and compared with rliable."""

import numpy as np
import pytest
from rliable import library, metrics

from expgen.evaluation.normalize import normalized
from expgen.paper import numbers
from expgen.report import statistics
from expgen.report.statistics import aggregates, mean_of_runs, probability_of_improvement, score_distribution

MEAN = {  # computed by hand from Tables 1 and 3
    "ppo": 0.313, "plr": 0.414, "ucb-drac": 0.393, "ppg": 0.449,
    "idaac": 0.505, "leep": 0.166, "expgen": 0.420, "expgen-idaac": 0.584,
}  # fmt: skip


def paper_matrix(method, constants="easy"):
    """[1, games]: the printed means, as if each were one run."""
    test = numbers.scores("test")
    return np.array([[normalized(test[method, game].mean, game, constants) for game in numbers.games()]])


def test_aggregates_of_table_1_match_the_paper():
    found = aggregates({method: paper_matrix(method) for method in MEAN}, resamples=10)
    for method, mean in MEAN.items():
        row = np.sort(paper_matrix(method)[0])
        assert found[method]["mean"].value == pytest.approx(mean, abs=5e-4)
        assert found[method]["median"].value == pytest.approx((row[7] + row[8]) / 2)
        assert found[method]["IQM"].value == pytest.approx(row[4:12].mean())  # the middle half of sixteen
        assert found[method]["optimality gap"].value == pytest.approx(1 - row.mean())  # no score is above 1
    best = {metric: max(found, key=lambda m: found[m][metric].value) for metric in ("mean", "IQM", "median")}
    assert set(best.values()) == {"expgen-idaac"}  # "outperforms the contending methods in all measures"


def test_rliable_constants_change_the_mean_slightly():
    shift = aggregates({"ppo": paper_matrix("ppo", "rliable")}, 10)["ppo"]["mean"].value - MEAN["ppo"]
    assert 0.01 < shift < 0.02


def test_intervals_contain_the_value_and_narrow_with_runs():
    rng = np.random.default_rng(0)
    few, many = rng.normal(0.5, 0.2, (3, 4)), rng.normal(0.5, 0.2, (100, 4))
    found = aggregates({"few": few, "many": many}, 500)
    for method in found:
        for estimate in found[method].values():
            assert estimate.low <= estimate.value <= estimate.high
    width = {method: found[method]["mean"].high - found[method]["mean"].low for method in found}
    assert width["many"] < width["few"] / 3
    # the mean's bootstrap against its normal approximation
    deviation = many.std(axis=0) / np.sqrt(100)
    assert width["many"] == pytest.approx(2 * 1.96 * np.sqrt((deviation**2).sum()) / 4, rel=0.15)


def test_mean_of_runs_has_student_t_interval():
    found = mean_of_runs([9.22, 9.14, 9.325])
    half = 4.303 * 0.0928 / 3**0.5  # Student's t of two degrees of freedom, standard deviation, runs
    assert found == pytest.approx((9.2283, 9.2283 - half, 9.2283 + half), abs=1e-3)


def test_score_distribution_equals_rliable():
    scores = {"a": np.array([[0.1, 0.5], [0.3, 0.9]]), "b": np.array([[0.2, 0.2]])}
    tau = np.linspace(0, 1, 21)
    found = score_distribution(scores, tau, 50)
    theirs, _ = library.create_performance_profile(scores, tau, reps=10)
    for method in scores:
        np.testing.assert_allclose(found[method].value, theirs[method])
        assert (found[method].low <= found[method].high).all()
    assert found["a"].value[8] == 0.5  # two of the four runs are above 0.4


def test_probability_of_improvement_equals_rliable():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 5, (6, 3)).astype(float), rng.integers(0, 5, (4, 3)).astype(float)  # with ties
    assert statistics._improvement(x, y) == pytest.approx(metrics.probability_of_improvement(x, y))
    assert probability_of_improvement(x, x, 20).value == 0.5
    assert probability_of_improvement(x + 10, y, 20) == (1, 1, 1)


def test_bootstrap_is_deterministic_and_restores_numpy_random_state():
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    x, y = np.array([[1.0], [2.0], [5.0]]), np.array([[2.0], [3.0], [4.0]])
    first = probability_of_improvement(x, y, 100)
    assert np.random.random() == expected  # noqa: NPY002
    assert probability_of_improvement(x, y, 100) == first


def test_intervals_that_share_a_point_overlap():
    estimate = mean_of_runs([1, 3])
    assert estimate.overlaps(0, estimate.low) and not estimate.overlaps(estimate.high + 0.1, 9)
