"""Random numbers as a function of what they are for: a counter hash, so that a stream's whole state is one number.

Nothing here depends on NumPy's generators, which may change between releases. Levels, mazes, level replay and agents'
noise all draw from this; training draws from each learner's own `torch.Generator`.
"""

import numpy as np
from numpy import ndarray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio: the step between SplitMix64's states


def mix(word: ndarray) -> ndarray:
    """SplitMix64's finaliser: every bit of the result depends on every bit of `word` (uint64)."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is the point
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return word ^ (word >> np.uint64(31))


def counter_hash(key: ndarray, index: ndarray | np.uint64) -> ndarray:
    """Output number `index` of a SplitMix64 generator seeded with `key`; both uint64, broadcast together."""
    with np.errstate(over="ignore"):
        return mix(key + (index + np.uint64(1)) * GOLDEN)


def draw_below(word: ndarray, limit: ndarray | int) -> ndarray:
    """Hashed words as integers in 0..limit-1, where `limit` is under 2**32; int64."""
    scaled = (word >> np.uint64(32)) * np.asarray(limit, dtype=np.uint64)
    return (scaled >> np.uint64(32)).astype(np.int64)
