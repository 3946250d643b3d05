"""The interval of a mean over episodes, honest about episodes that share a level."""

import numpy as np
from numpy import ndarray

RESAMPLES = 2000


def mean_interval(value: ndarray, level: ndarray, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap of the mean of `value` `[E]`, resampling levels with all their episodes.

    A level below 0 has no name: each such episode is taken to be on a level of its own.
    """
    level = np.where(level < 0, -1 - np.arange(len(level)), level)
    _, cluster = np.unique(level, return_inverse=True)
    size = np.bincount(cluster)  # episodes of each level
    total = np.bincount(cluster, weights=value)
    rng = np.random.default_rng(0)
    weight = rng.multinomial(len(size), np.full(len(size), 1 / len(size)), size=RESAMPLES)  # [R, levels]
    mean = weight @ total / (weight @ size)
    low, high = np.quantile(mean, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
