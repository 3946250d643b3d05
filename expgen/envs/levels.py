"""Level sets (a range, a list, or all levels) and the random order in which levels are drawn from them.

A level is the seed of the level generator. Text forms, used by flags, files and `build_env`: `200` (levels 0 to 199),
`1000:500` (500 levels from 1000), `3,7,9` (a list) and `all`.
"""

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from expgen.errors import InputError
from expgen.random import counter_hash, draw_below
from expgen.text import short_repr

MAX_LEVELS = 10**7  # of a finite set, which is held in memory
Split = Literal["train", "test"]  # training levels, unseen levels
SPLITS: tuple[Split, Split] = ("train", "test")
SEED_LIMIT = 2**31 - 1  # levels are drawn from [0, SEED_LIMIT), as in ProcGen


@dataclass(frozen=True)
class LevelSet:
    """A set of level seeds; if `seeds` is None, all levels except `excluded`."""

    seeds: range | tuple[int, ...] | None
    excluded: range | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.seeds, range) and self.seeds.step != 1:  # the text START:COUNT has no step
            object.__setattr__(self, "seeds", tuple(self.seeds))

    @staticmethod
    def parse(levels: "LevelSet | str | int | Iterable[int]", field: str = "levels") -> "LevelSet":
        """Return the LevelSet for a text, a count or a list of levels; errors name `field`."""
        if isinstance(levels, LevelSet):
            return levels
        if not isinstance(levels, (str, int, np.integer)):
            numbers = levels if isinstance(levels, range) else _whole_numbers(levels, field)
            return _validated(numbers, field, levels)
        text = str(levels).strip()
        if text == "all":
            return LevelSet(None)
        try:
            if ":" in text:
                start, count = (int(part) for part in text.split(":"))
                seeds: range | tuple[int, ...] = range(start, start + count)
            elif "," in text:
                seeds = tuple(int(part) for part in text.removesuffix(",").split(","))
            else:
                seeds = range(int(text))
        except ValueError:
            raise InputError(f"{field} is {text!r}; accepted: COUNT, START:COUNT, a list A,B,C, or all") from None
        return _validated(seeds, field, text)

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
        """Return `all` without the finite set `other`."""
        if self.seeds is not None or other.seeds is None:
            raise ValueError("levels can only be excluded from 'all', and only a finite set of them")
        return LevelSet(None, excluded=other.seeds)

    def overlaps(self, other: "LevelSet") -> bool:
        """Return whether the two sets have a level in common."""
        if isinstance(self.seeds, range) and isinstance(other.seeds, range):
            return max(self.seeds.start, other.seeds.start) < min(self.seeds.stop, other.seeds.stop)
        smaller, larger = sorted((self, other), key=len)
        return smaller.seeds is None or any(level in larger for level in smaller.seeds)

    def draw(self, num: int, rng: np.random.Generator) -> ndarray:
        """Draw `num` levels in random order, `[num]` int64; how often two levels occur differs by at most one."""
        if self.seeds is None:
            drawn = rng.integers(SEED_LIMIT, size=num)
            while (is_excluded := np.isin(drawn, np.asarray(self.excluded, dtype=np.int64))).any():
                drawn[is_excluded] = rng.integers(SEED_LIMIT, size=int(is_excluded.sum()))
            return drawn
        size = len(self.seeds)
        index = np.concatenate([np.tile(np.arange(size), num // size), rng.permutation(size)[: num % size]])
        return np.asarray(self.seeds, dtype=np.int64)[rng.permutation(index)]


def _whole_numbers(levels: Any, field: str) -> tuple[int, ...]:
    if not isinstance(levels, Iterable) or getattr(levels, "ndim", 1) != 1:
        shown = " ".join(repr(levels).split())[:80]  # the repr of a matrix has several lines
        raise InputError(f"{field} is {shown}; accepted: whole numbers, or COUNT, START:COUNT, A,B,C or all")
    numbers = []
    for level in levels:
        try:
            numbers.append(operator.index(level))
        except TypeError:
            raise InputError(f"{field} names level {level!r}; accepted: whole numbers") from None
    return tuple(numbers)


def _validated(seeds: range | tuple[int, ...], field: str, given: object) -> LevelSet:
    if not seeds:
        raise InputError(f"{field} is {short_repr(given)}, which names 0 levels; accepted: at least one level")
    ends = (seeds[0], seeds[-1]) if isinstance(seeds, range) else seeds  # a range may have two billion levels
    if invalid := [level for level in ends if not 0 <= level < SEED_LIMIT]:
        raise InputError(f"{field} names level {invalid[0]}; accepted: levels in 0..{SEED_LIMIT - 1}")
    if len(seeds) > MAX_LEVELS:
        raise InputError(f"{field} names {len(seeds)} levels; accepted: at most {MAX_LEVELS}, or all")
    if not isinstance(seeds, range) and len(set(seeds)) < len(seeds):
        raise InputError(f"{field} names a level twice; accepted: distinct levels")
    return LevelSet(seeds)


class LevelStream:
    """Levels drawn from a LevelSet with replacement, one independent sequence per environment.

    The k-th level of environment i depends only on the seed, i and k, not on the number of environments or the NumPy
    version (NumPy's generators may change between releases). So the state of a sequence is one number: k.
    """

    def __init__(self, levels: LevelSet, num_envs: int, seed: int):
        seed_word = np.array([seed & (2**64 - 1)], dtype=np.uint64)
        self._key = counter_hash(counter_hash(seed_word, np.uint64(0)), np.arange(num_envs, dtype=np.uint64))  # [N]
        seeds = range(SEED_LIMIT) if levels.seeds is None else levels.seeds
        self._seeds = seeds if isinstance(seeds, range) else np.array(seeds)
        self._excluded = np.sort(np.array(levels.excluded, dtype=np.int64))
        self.drawn = np.zeros(num_envs, dtype=np.uint64)  # [N] the state: words read from each sequence

    def next(self, env: ndarray) -> ndarray:
        """Draw the next level of each environment in `env` (distinct indices), int64."""
        drawn = self.drawn[env]
        level = self._read(self._key[env], drawn)
        self.drawn[env] = drawn
        return level

    def peek(self, count: int) -> ndarray:
        """Return the next `count` levels of every environment, `[count * N]` int64, without drawing them."""
        drawn = self.drawn.copy()
        return np.concatenate([self._read(self._key, drawn) for _ in range(count)])

    def _read(self, key: ndarray, drawn: ndarray) -> ndarray:
        """Return the next level of each sequence and advance `drawn` in place."""
        level = self._level(counter_hash(key, drawn))
        drawn += np.uint64(1)
        while self._excluded.size and (is_excluded := self._is_excluded(level)).any():
            level[is_excluded] = self._level(counter_hash(key[is_excluded], drawn[is_excluded]))
            drawn[is_excluded] += np.uint64(1)
        return level

    def _level(self, word: ndarray) -> ndarray:
        index = draw_below(word, len(self._seeds))
        if isinstance(self._seeds, range):
            return self._seeds.start + index
        return self._seeds[index]

    def _is_excluded(self, level: ndarray) -> ndarray:
        index = np.searchsorted(self._excluded, level)
        return self._excluded.take(index, mode="clip") == level
