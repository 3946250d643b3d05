"""Counter-based random numbers (SplitMix64): the state of a stream is one integer.

Independent of NumPy's generators, which may change between releases. Level choice, mazes, level replay and agents'
noise use this module; training uses each learner's own `torch.Generator`. An agent's noise depends on (seed, episode,
step, draw) only, so an episode does not depend on the number of environments or on the episodes beside it.
"""

import numpy as np
from numpy import ndarray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ / golden ratio: the step between SplitMix64's states


def mix(word: ndarray) -> ndarray:
    """SplitMix64's finaliser: every bit of the result depends on every bit of `word` (uint64)."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is intended
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return word ^ (word >> np.uint64(31))


def counter_hash(key: ndarray, index: ndarray | np.uint64) -> ndarray:
    """Output number `index` of a SplitMix64 generator seeded with `key`; both uint64, broadcast together."""
    with np.errstate(over="ignore"):
        return mix(key + (index + np.uint64(1)) * GOLDEN)


def draw_below(word: ndarray, limit: ndarray | int) -> ndarray:
    """Map hashed words (uint64) to integers in 0..limit-1 (int64), for a `limit` below 2**32."""
    scaled = (word >> np.uint64(32)) * np.asarray(limit, dtype=np.uint64)
    return (scaled >> np.uint64(32)).astype(np.int64)


# Independent streams of one seed. The leader and the explorer have the same seed and act in the same step; with shared
# noise their actions would be correlated.
WITH_MEMORY, MEMORYLESS, UNIFORM, STRETCH, MEMBERS = range(5)  # member j, unless it leads: MEMBERS + j
TURN, EXPLORERS = 2**20, 2**20 + 1  # which explorer acts; explorer j > 0: EXPLORERS + j
TUNING = 2**40  # levels and noise of tune, which must not be those of a later evaluation with the same seed


def stream_seed(seed: int, stream: int) -> int:
    """Return the seed of one stream: `seed` itself for stream 0; distinct for all small seeds and streams."""
    if stream == 0:
        return seed
    return int(mix(np.array([(seed ^ stream * int(GOLDEN)) % 2**64], dtype=np.uint64))[0])


def uniform_noise(seed: int, episode: ndarray, step: ndarray, draws: int) -> ndarray:
    """Return uniform numbers in (0, 1), `[N, draws]` float64, for `episode` and `step` `[N]`."""
    with np.errstate(over="ignore"):
        key = mix(np.full(len(episode), seed, dtype=np.uint64) + GOLDEN)
        key = mix(key ^ (episode.astype(np.uint64) + GOLDEN))
        key = mix(key ^ (step.astype(np.uint64) + GOLDEN))  # [N]
        bits = counter_hash(key[:, None], np.arange(draws, dtype=np.uint64))  # [N, draws]
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # 53 bits + 0.5 would round up to 1


def gumbel_noise(seed: int, episode: ndarray, step: ndarray, draws: int) -> ndarray:
    """Return standard Gumbel noise `[N, draws]` float32, for `episode` and `step` `[N]`."""
    return -np.log(-np.log(uniform_noise(seed, episode, step, draws))).astype(np.float32)


class EpisodeClock:
    """Counts the steps of each environment's episode, and the episodes if the caller does not number them."""

    def __init__(self) -> None:
        self.episode = np.zeros(0, dtype=np.int64)
        self.step = np.zeros(0, dtype=np.int64)

    def tick(self, first: ndarray, episode: ndarray | None) -> None:
        """Advance to the next observation. Without `episode`, environment i numbers its episodes i, i + N, i + 2N, …"""
        num_envs = len(first)
        if len(self.step) != num_envs:  # another batch of environments: start again
            self.step = np.zeros(num_envs, dtype=np.int64)
            self.episode = np.arange(num_envs, dtype=np.int64) - num_envs * np.asarray(first, dtype=np.int64)
        self.step = np.where(first, 0, self.step + 1)
        self.episode = self.episode + num_envs * np.asarray(first, dtype=np.int64) if episode is None else episode
