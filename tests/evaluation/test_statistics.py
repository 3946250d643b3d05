"""Confidence interval of a mean: levels are resampled, not episodes."""

import numpy as np
import pytest

from expgen.evaluation.evaluate import mean_interval


def test_interval_depends_on_levels_not_on_episodes_per_level():
    """Two levels are drawn with replacement: means 0, 5 and 10 have probability ¼, ½ and ¼."""
    value, level = np.repeat([0.0, 10.0], 500), np.repeat([7, 3], 500)
    assert mean_interval(value, level) == (0.0, 10.0)
    assert mean_interval(value, level, confidence=0.4) == (5.0, 5.0)  # the 30th and the 70th percentile
    narrow = mean_interval(value, np.arange(1000))  # 1000 levels, one episode each
    assert 4.6 < narrow[0] < 4.8 and 5.2 < narrow[1] < 5.4  # 5 ± 1.96 · 5 / √1000 = 5 ± 0.31


def test_levels_are_weighted_by_their_episodes():
    """One episode of 10 and three of 0: if both levels are drawn once, the mean over four episodes is 2.5."""
    value, level = np.array([10.0, 0.0, 0.0, 0.0]), np.array([1, 2, 2, 2])
    assert mean_interval(value, level, confidence=0.4) == (2.5, 2.5)
    assert mean_interval(value, level) == (0.0, 10.0)  # one level drawn twice


def test_interval_over_one_level_has_no_spread():
    assert mean_interval(np.array([1.0, 2.0, 6.0]), np.array([4, 4, 4])) == (3.0, 3.0)


def test_interval_ignores_order_of_episodes_within_levels():
    rng = np.random.default_rng(0)
    value, level = rng.normal(size=60), np.arange(60) % 7
    order = rng.permutation(60)
    assert mean_interval(value, level) == pytest.approx(mean_interval(value[order], level[order]))


def test_episodes_with_unknown_level_count_as_separate_levels():
    value = np.array([0.0, 10.0] * 50)
    unnamed = mean_interval(value, np.full(100, -1))
    assert unnamed[0] < 4.5 and unnamed[1] > 5.5
    assert mean_interval(value, np.zeros(100, dtype=int)) == (5.0, 5.0)  # one level
