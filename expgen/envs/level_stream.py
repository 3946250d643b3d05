"""Which level each environment plays next: a counter and a hash per environment, so that the future is one number.

Environment i's k-th level depends on the seed, i and k alone: not on how many environments run beside it, nor on the
NumPy version, whose generators may change between releases.
"""

import numpy as np
from numpy import ndarray

from expgen.envs.levels import SEED_LIMIT, LevelSet
from expgen.random import counter_hash, draw_below

_MASK = 2**64 - 1


class LevelStream:
    """Levels drawn from a LevelSet with replacement, one independent sequence per environment."""

    def __init__(self, levels: LevelSet, num_envs: int, seed: int):
        seed_word = np.array([seed & _MASK], dtype=np.uint64)
        self._key = counter_hash(counter_hash(seed_word, np.uint64(0)), np.arange(num_envs, dtype=np.uint64))  # [N]
        self._seeds = np.array(levels.seeds) if isinstance(levels.seeds, tuple) else levels.seeds
        self._excluded = np.sort(np.array(levels.excluded, dtype=np.int64))
        self.drawn = np.zeros(num_envs, dtype=np.uint64)  # [N] the whole state: how far each sequence has been read

    def next(self, env: ndarray) -> ndarray:
        """The next level of each environment in `env` (distinct indices), int64."""
        drawn = self.drawn[env]
        level = self._read(self._key[env], drawn)
        self.drawn[env] = drawn
        return level

    def ahead(self, count: int) -> ndarray:
        """The next `count` levels of every environment, `[count * N]` int64; nothing is drawn."""
        drawn = self.drawn.copy()
        return np.concatenate([self._read(self._key, drawn) for _ in range(count)])

    def _read(self, key: ndarray, drawn: ndarray) -> ndarray:
        level = self._level(counter_hash(key, drawn))
        drawn += np.uint64(1)
        while self._excluded.size and (leaked := self._is_excluded(level)).any():
            level[leaked] = self._level(counter_hash(key[leaked], drawn[leaked]))
            drawn[leaked] += np.uint64(1)
        return level

    def _level(self, word: ndarray) -> ndarray:
        if self._seeds is None:
            return draw_below(word, SEED_LIMIT)
        index = draw_below(word, len(self._seeds))
        if isinstance(self._seeds, range):
            return self._seeds.start + index * self._seeds.step
        return self._seeds[index]

    def _is_excluded(self, level: ndarray) -> ndarray:
        at = np.searchsorted(self._excluded, level)
        return self._excluded.take(at, mode="clip") == level
