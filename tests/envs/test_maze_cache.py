"""The cache of mazes: whatever is asked in whatever order, they are the generator's."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy import ndarray

from expgen.envs.maze_generator import MazeCache, MazeGenerator, Mazes


class Counting(MazeGenerator):
    """A generator that keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__(2, 4, num_themes=3, texture=2)
        self.asked: list[list[int]] = []

    def __call__(self, level: ndarray) -> Mazes:
        self.asked.append(level.tolist())
        return super().__call__(level)


@pytest.fixture
def generator() -> Counting:
    return Counting()


def ahead(*levels: int) -> Callable[[], ndarray]:
    return lambda: np.array(levels, dtype=np.int64)


def never() -> ndarray:
    raise AssertionError("nothing was missing")


def check(cache: MazeCache, levels: list[int], slot: ndarray) -> None:
    fresh = MazeGenerator(2, 4, num_themes=3, texture=2)(np.array(levels))
    assert all(np.array_equal(kept[slot], new) for kept, new in zip(cache.mazes, fresh, strict=True))


def test_mazes_are_the_generator_s_through_many_evictions(generator: Counting) -> None:
    cache, rng = MazeCache(generator, 12), np.random.default_rng(0)
    for _ in range(60):
        level, upcoming = rng.integers(30, size=4), rng.integers(30, size=6)
        check(cache, level.tolist(), cache.slot(level, ahead(*upcoming)))


def test_levels_are_generated_once_and_with_those_to_come(generator: Counting) -> None:
    cache = MazeCache(generator, 8)
    generator.asked.clear()
    cache.slot(np.array([5, 3, 5]), ahead(9, 3))
    assert generator.asked == [[3, 5, 9]]
    slot = cache.slot(np.array([9, 5, 9]), never)
    assert slot[0] == slot[2] != slot[1]
    cache.slot(np.array([9, 1]), ahead(3, 2))
    assert generator.asked == [[3, 5, 9], [1, 2]]
    check(cache, [3, 1, 9, 2, 5], cache.slot(np.array([3, 1, 9, 2, 5]), never))


def test_levels_beyond_the_largest_known_are_missing(generator: Counting) -> None:
    """The place a search finds for them is past the end."""
    cache = MazeCache(generator, 8)
    check(cache, [2], cache.slot(np.array([2]), ahead()))
    check(cache, [2**31 - 2, 0], cache.slot(np.array([2**31 - 2, 0]), ahead()))


def test_a_full_cache_starts_anew_with_what_is_asked_for_now(generator: Counting) -> None:
    cache = MazeCache(generator, 4)
    cache.slot(np.array([0, 1, 2]), ahead(3))
    check(cache, [1, 4], cache.slot(np.array([1, 4]), ahead(5)))
    assert generator.asked[-1] == [1, 4, 5]
    check(cache, [5, 4, 1], cache.slot(np.array([5, 4, 1]), never))
