"""MazeCache returns the generator's mazes for any sequence of requests."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy import ndarray

from expgen.envs.maze_generator import MazeCache, MazeGenerator, Mazes


class RecordingGenerator(MazeGenerator):
    """A generator that records the requested levels."""

    def __init__(self) -> None:
        super().__init__(2, 4, num_themes=3, texture=2)
        self.requested: list[list[int]] = []

    def __call__(self, level: ndarray) -> Mazes:
        self.requested.append(level.tolist())
        return super().__call__(level)


@pytest.fixture
def generator() -> RecordingGenerator:
    return RecordingGenerator()


def upcoming_levels(*levels: int) -> Callable[[], ndarray]:
    return lambda: np.array(levels, dtype=np.int64)


def never() -> ndarray:
    raise AssertionError("no level was missing")


def check(cache: MazeCache, levels: list[int], slot: ndarray) -> None:
    fresh = MazeGenerator(2, 4, num_themes=3, texture=2)(np.array(levels))
    assert all(np.array_equal(kept[slot], new) for kept, new in zip(cache.mazes, fresh, strict=True))


def test_maze_cache_matches_generator_when_evicting(generator: RecordingGenerator) -> None:
    cache, rng = MazeCache(generator, 12), np.random.default_rng(0)
    for _ in range(60):
        level, upcoming = rng.integers(30, size=4), rng.integers(30, size=6)
        check(cache, level.tolist(), cache.slot(level, upcoming_levels(*upcoming)))


def test_maze_cache_generates_levels_once_and_with_upcoming_ones(generator: RecordingGenerator) -> None:
    cache = MazeCache(generator, 8)
    generator.requested.clear()
    cache.slot(np.array([5, 3, 5]), upcoming_levels(9, 3))
    assert generator.requested == [[3, 5, 9]]
    slot = cache.slot(np.array([9, 5, 9]), never)
    assert slot[0] == slot[2] != slot[1]
    cache.slot(np.array([9, 1]), upcoming_levels(3, 2))
    assert generator.requested == [[3, 5, 9], [1, 2]]
    check(cache, [3, 1, 9, 2, 5], cache.slot(np.array([3, 1, 9, 2, 5]), never))


def test_maze_cache_generates_levels_above_and_below_known_ones(generator: RecordingGenerator) -> None:
    cache = MazeCache(generator, 8)
    check(cache, [2], cache.slot(np.array([2]), upcoming_levels()))
    check(cache, [2**31 - 2, 0], cache.slot(np.array([2**31 - 2, 0]), upcoming_levels()))


def test_full_maze_cache_is_emptied_and_keeps_requested_levels(generator: RecordingGenerator) -> None:
    cache = MazeCache(generator, 4)
    cache.slot(np.array([0, 1, 2]), upcoming_levels(3))
    check(cache, [1, 4], cache.slot(np.array([1, 4]), upcoming_levels(5)))
    assert generator.requested[-1] == [1, 4, 5]
    check(cache, [5, 4, 1], cache.slot(np.array([5, 4, 1]), never))
