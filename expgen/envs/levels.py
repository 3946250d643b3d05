"""Which levels an environment may play (a range, a list, or the whole distribution), and which one it plays next.

A level is the seed its generator starts from. Text forms, used by flags, files and `build_env` alike:
`200` (levels 0 to 199), `1000:500` (500 levels from 1000), `3,7,9` (just those) and `all`.
"""

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.errors import InputError
from expgen.random import counter_hash, draw_below

MOST_LEVELS = 10**7  # of a finite set, which is held in memory
SEED_LIMIT = 2**31 - 1  # levels are drawn from [0, SEED_LIMIT), as ProcGen does


@dataclass(frozen=True)
class LevelSet:
    """A set of level seeds; `seeds` None means every level there is, less `excluded`."""

    seeds: range | tuple[int, ...] | None
    excluded: range | tuple[int, ...] = ()

    @staticmethod
    def parse(levels: "LevelSet | str | int | Iterable[int]", field: str = "levels") -> "LevelSet":
        """A LevelSet from any of its spellings."""
        if isinstance(levels, LevelSet):
            return levels
        if isinstance(levels, range):
            checked = _checked(levels, field)  # before its levels are listed
            return checked if levels.step == 1 else LevelSet(tuple(levels))
        if not isinstance(levels, (str, int, np.integer)):
            return _checked(_whole_numbers(levels, field), field)
        text = str(levels).strip()
        if text == "all":
            return LevelSet(None)
        try:
            if ":" in text:
                start, count = (int(part) for part in text.split(":"))
                return _checked(range(start, start + count), field)
            if "," in text:
                return _checked(tuple(int(part) for part in text.removesuffix(",").split(",")), field)
            return _checked(range(int(text)), field)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{field} is {text!r}; accepted: COUNT, START:COUNT, a list A,B,C, or all") from None

    def __repr__(self) -> str:
        text = str(self)
        kept = text if len(text) <= 40 else f"{text[:37]}..."
        return f"LevelSet({kept!r}{f', {len(self.excluded)} excluded' if self.excluded else ''})"

    def __str__(self) -> str:
        if self.seeds is None:
            return "all"
        if isinstance(self.seeds, range):
            return f"{self.seeds.start}:{len(self.seeds)}"
        return ",".join(str(seed) for seed in self.seeds) + ("," if len(self.seeds) == 1 else "")

    def __len__(self) -> int:
        return SEED_LIMIT - len(self.excluded) if self.seeds is None else len(self.seeds)

    def __contains__(self, level: int) -> bool:
        return level not in self.excluded if self.seeds is None else level in self.seeds

    def without(self, other: "LevelSet") -> "LevelSet":
        """This set with `other` taken out: only needed of the whole distribution."""
        if self.seeds is not None or other.seeds is None:
            raise ValueError("only 'all' less a finite set is a level set")
        return LevelSet(None, excluded=other.seeds)

    def overlaps(self, other: "LevelSet") -> bool:
        """Whether any level is in both."""
        if isinstance(self.seeds, range) and isinstance(other.seeds, range):
            return max(self.seeds.start, other.seeds.start) < min(self.seeds.stop, other.seeds.stop)
        few, many = sorted((self, other), key=len)
        return few.seeds is None or any(level in many for level in few.seeds)

    def draw(self, num: int, rng: np.random.Generator) -> ndarray:
        """`num` levels, each as often as any other up to one, in random order. `[num]` int64."""
        if self.seeds is None:
            drawn = rng.integers(SEED_LIMIT, size=num)
            while (leaked := np.isin(drawn, np.asarray(self.excluded, dtype=np.int64))).any():
                drawn[leaked] = rng.integers(SEED_LIMIT, size=int(leaked.sum()))
            return drawn
        size = len(self.seeds)
        index = np.concatenate([np.tile(np.arange(size), num // size), rng.permutation(size)[: num % size]])
        return np.asarray(self.seeds, dtype=np.int64)[rng.permutation(index)]


def _whole_numbers(levels: Any, field: str) -> tuple[int, ...]:
    if not isinstance(levels, Iterable) or getattr(levels, "ndim", 1) != 1:
        shown = " ".join(repr(levels).split())[:80]  # a table of numbers has several lines
        raise InputError(f"{field} is {shown}; accepted: whole numbers, or COUNT, START:COUNT, A,B,C or all")
    numbers = []
    for level in levels:
        try:
            numbers.append(operator.index(level))
        except TypeError:
            raise InputError(f"{field} names level {level!r}; accepted: whole numbers") from None
    return tuple(numbers)


def _checked(seeds: range | tuple[int, ...], field: str) -> LevelSet:
    ends = (seeds[0], seeds[-1]) if seeds and isinstance(seeds, range) else seeds  # a range may be two billion long
    if not seeds:
        raise InputError(f"{field} names 0 levels; accepted: at least one")
    if beyond := [level for level in ends if not 0 <= level < SEED_LIMIT]:
        raise InputError(f"{field} names level {beyond[0]}; accepted: levels in 0..{SEED_LIMIT - 1}")
    if len(seeds) > MOST_LEVELS:
        raise InputError(f"{field} names {len(seeds)} levels; accepted: at most {MOST_LEVELS}, or all")
    if not isinstance(seeds, range) and len(set(seeds)) < len(seeds):
        raise InputError(f"{field} names a level twice; accepted: distinct levels")
    return LevelSet(seeds)


class LevelStream:
    """Levels drawn from a LevelSet with replacement, one independent sequence per environment.

    Environment i's k-th level depends on the seed, i and k alone: not on how many environments run beside it, nor on
    the NumPy version, whose generators may change between releases. So its future is one number, how far it was read.
    """

    def __init__(self, levels: LevelSet, num_envs: int, seed: int):
        seed_word = np.array([seed & (2**64 - 1)], dtype=np.uint64)
        self._key = counter_hash(counter_hash(seed_word, np.uint64(0)), np.arange(num_envs, dtype=np.uint64))  # [N]
        seeds = range(SEED_LIMIT) if levels.seeds is None else levels.seeds
        self._seeds = seeds if isinstance(seeds, range) else np.array(seeds)
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
        index = draw_below(word, len(self._seeds))
        if isinstance(self._seeds, range):
            return self._seeds.start + index * self._seeds.step
        return self._seeds[index]

    def _is_excluded(self, level: ndarray) -> ndarray:
        at = np.searchsorted(self._excluded, level)
        return self._excluded.take(at, mode="clip") == level
