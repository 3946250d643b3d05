"""Means over runs with Student's t intervals, and aggregates over games by rliable's stratified bootstrap; all 95 %.

Scores are matrices `[runs, games]`, normalised for aggregates over games. rliable always draws from NumPy's global
generator; `_fixed_seed` seeds it and restores its state.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy import ndarray

Key = TypeVar("Key")  # identifies a matrix of scores, usually a Method
RESAMPLES = 2000
METRICS = ("median", "IQM", "mean", "optimality gap")


class Estimate(NamedTuple):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float

    def overlaps(self, low: float, high: float) -> bool:
        """Whether the interval shares a point with that from `low` to `high`."""
        return self.low <= high and low <= self.high


class Profile(NamedTuple):
    """Share of runs above each threshold with its interval, each `[thresholds]`."""

    value: ndarray
    low: ndarray
    high: ndarray


def aggregates(scores: Mapping[Key, ndarray], resamples: int = RESAMPLES) -> dict[Key, dict[str, Estimate]]:
    """Return median, IQM, mean and optimality gap of normalised scores, by key and by METRICS.

    The gap is rliable's, 1 − mean of min(score, 1); it equals the paper's 1 − mean if no score is above 1.
    """
    from rliable import metrics

    names = ("aggregate_median", "aggregate_iqm", "aggregate_mean", "aggregate_optimality_gap")  # same order as METRICS
    found = _estimates(scores, [getattr(metrics, name) for name in names], resamples)
    return {method: dict(zip(METRICS, estimates)) for method, estimates in found.items()}


def mean_of_runs(values: Sequence[float]) -> Estimate:
    """Return the mean over two or more runs of one game ± t · std / √runs; a bootstrap of few runs is too narrow."""
    from scipy.stats import t

    mean = float(np.mean(values))
    half = float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5)
    return Estimate(mean, mean - half, mean + half)


def probability_of_improvement(x: ndarray, y: ndarray, resamples: int = RESAMPLES) -> Estimate:
    """Return P(a run of X scores above one of Y), with ties as one half, averaged over games (Figure 6, right)."""
    return _estimates({"": [x, y]}, [_improvement], resamples)[""][0]


def _improvement(x: ndarray, y: ndarray) -> float:
    """Compute rliable's probability_of_improvement without SciPy's p-value, which is a hundred times faster."""
    difference = x[:, None] - y[None]  # [runs of X, runs of Y, games]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def _estimates(
    scores: Mapping[Key, Any], measures: Sequence[Callable[..., Any]], resamples: int
) -> dict[Key, list[Estimate]]:
    """Return each measure for each key, whose value is a matrix of scores or a list of matrices."""
    from rliable import library

    def measure(*matrices: ndarray) -> ndarray:
        return np.array([metric(*matrices) for metric in measures])

    with _fixed_seed():
        points, intervals = library.get_interval_estimates(dict(scores), measure, reps=resamples)
    return {name: [Estimate(*map(float, values)) for values in zip(points[name], *intervals[name])] for name in scores}


def score_distribution(scores: Mapping[Key, ndarray], tau: ndarray, resamples: int = RESAMPLES) -> dict[Key, Profile]:
    """Return P(score > τ) over runs and games (Figure 6, left)."""
    from rliable import library

    def above(matrix: ndarray, tau: ndarray) -> ndarray:
        return (matrix.reshape(-1, 1) > tau).mean(axis=0)  # rliable's run_score_deviation, vectorised over τ

    with _fixed_seed():
        points, intervals = library.create_performance_profile(
            dict(scores), tau, custom_profile_func=above, reps=resamples
        )
    return {method: Profile(points[method], *intervals[method]) for method in scores}


@contextlib.contextmanager
def _fixed_seed() -> Iterator[None]:
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
