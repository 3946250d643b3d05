"""Mazes kept ready by level, so that a level is generated once and levels are generated many at a time."""

from collections.abc import Callable

import numpy as np
from numpy import ndarray

from expgen.envs.maze_generator import MazeGenerator, Mazes


class MazeCache:
    """At most `capacity` mazes; when there is no room left it starts anew. What it holds never changes a result."""

    def __init__(self, generator: MazeGenerator, capacity: int):
        self._generator = generator
        self._capacity = capacity
        self._level = np.empty(0, dtype=np.int64)  # [K] sorted
        self._slot = np.empty(0, dtype=np.int64)  # [K] where each level lies in `mazes`
        self.mazes = Mazes(*(np.empty((capacity, *part.shape[1:]), part.dtype) for part in generator(self._level)))

    def slot(self, level: ndarray, upcoming: Callable[[], ndarray]) -> ndarray:
        """Where each level lies in `mazes`, `[len(level)]`, valid until the next call.

        If one has to be generated, the `upcoming` ones are generated with it: alone, a level costs far more.
        """
        if not self._level.size or (self._level.take(self._find(level), mode="clip") != level).any():
            self._add(np.unique(np.concatenate([level, upcoming()])))
        return self._slot[self._find(level)]

    def _find(self, level: ndarray) -> ndarray:
        return np.searchsorted(self._level, level)

    def _add(self, level: ndarray) -> None:
        fresh = level[~np.isin(level, self._level)]
        if len(self._level) + len(fresh) > self._capacity:
            fresh, self._level, self._slot = level, self._level[:0], self._slot[:0]
        slot = np.arange(len(self._level), len(self._level) + len(fresh))
        for part, new in zip(self.mazes, self._generator(fresh), strict=True):
            part[slot] = new
        joined = np.concatenate([self._level, fresh])
        order = np.argsort(joined, kind="stable")
        self._level, self._slot = joined[order], np.concatenate([self._slot, slot])[order]
