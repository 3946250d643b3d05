"""Means over runs by Student's t; aggregates over games and runs with rliable: percentile stratified bootstrap; 95 %.

Scores are matrices `[runs, games]`, normalised where games are put together. rliable draws from NumPy's global
generator whatever it is given; `_steady` seeds that generator and puts it back as it was.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy import ndarray

Key = TypeVar("Key")  # whose scores they are
RESAMPLES = 2000
METRICS = ("median", "IQM", "mean", "optimality gap")


class Estimate(NamedTuple):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def overlaps(self, low: float, high: float) -> bool:
        """Whether the intervals share a point."""
        return self.low <= high and low <= self.high


class Profile(NamedTuple):
    """Share of runs above each threshold: `value`, `low`, `high` `[thresholds]`."""

    value: ndarray
    low: ndarray
    high: ndarray


def aggregates(scores: Mapping[Key, ndarray], resamples: int = RESAMPLES) -> dict[Key, dict[str, Estimate]]:
    """Median, IQM and mean of normalised scores and the optimality gap, by method and by METRICS.

    The gap is rliable's, 1 − mean of min(score, 1): the paper's 1 − mean where no score is above 1.
    """
    from rliable import metrics

    of_all = (metrics.aggregate_median, metrics.aggregate_iqm, metrics.aggregate_mean, metrics.aggregate_optimality_gap)
    found = _estimates(scores, of_all, resamples)
    return {method: dict(zip(METRICS, estimates)) for method, estimates in found.items()}


def mean_of_runs(values: Sequence[float]) -> Estimate:
    """The mean over two or more runs of one game: ± t · std / √runs, since a bootstrap of few runs is too narrow."""
    from scipy.stats import t

    mean = float(np.mean(values))
    half = float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return Estimate(mean, mean - half, mean + half)


def probability_of_improvement(x: ndarray, y: ndarray, resamples: int = RESAMPLES) -> Estimate:
    """P(a run of X scores above one of Y), ties halved, averaged over games (Figure 6, right)."""
    return _estimates({"": [x, y]}, [_improvement], resamples)[""][0]


def _improvement(x: ndarray, y: ndarray) -> float:
    """rliable's metric of that name, without SciPy's p-value: a hundred times as fast, which 2000 resamples need."""
    difference = x[:, None] - y[None]  # [runs of X, runs of Y, games]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def _estimates(
    scores: Mapping[Key, Any], measures: Sequence[Callable[..., Any]], resamples: int
) -> dict[Key, list[Estimate]]:
    """Each measure of each matrix of scores, or of several together."""
    from rliable import library

    def measure(*matrices: ndarray) -> ndarray:
        return np.array([one(*matrices) for one in measures])

    with _steady():
        points, intervals = library.get_interval_estimates(dict(scores), measure, reps=resamples)
    return {name: [Estimate(*map(float, one)) for one in zip(points[name], *intervals[name])] for name in scores}


def score_distribution(scores: Mapping[Key, ndarray], tau: ndarray, resamples: int = RESAMPLES) -> dict[Key, Profile]:
    """P(score > τ) over runs and games (the paper's Figure 6, left)."""
    from rliable import library

    def above(matrix: ndarray, tau: ndarray) -> ndarray:
        return (matrix.reshape(-1, 1) > tau).mean(axis=0)  # rliable's run_score_deviation for all τ at once

    with _steady():
        points, intervals = library.create_performance_profile(
            dict(scores), tau, custom_profile_func=above, reps=resamples
        )
    return {method: Profile(points[method], *intervals[method]) for method in scores}


@contextlib.contextmanager
def _steady() -> Iterator[None]:
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
