"""Noise of an episode: independent of the batch, uniform, never 0 or 1."""

import numpy as np
import pytest

from expgen.random import EpisodeClock, gumbel_noise, uniform_noise


def test_noise_depends_only_on_seed_episode_step_and_draw():
    episode, step = np.array([5, 9, 5, 2]), np.array([0, 3, 7, 3])
    batch = uniform_noise(1, episode, step, 6)
    for i in range(4):
        alone = uniform_noise(1, episode[i : i + 1], step[i : i + 1], 6)
        assert np.array_equal(batch[i : i + 1], alone)
    assert np.array_equal(batch[:, :2], uniform_noise(1, episode, step, 2))  # more draws keep the first ones
    assert np.array_equal(batch[::-1], uniform_noise(1, episode[::-1], step[::-1], 6))


def test_noise_depends_on_every_coordinate():
    grid = [
        uniform_noise(seed, np.array([episode]), np.array([step]), 3)[0]
        for seed in range(4)
        for episode in (-1, 0, 1, 2, 1000)
        for step in range(10)
    ]
    assert len(np.unique(np.concatenate(grid))) == 4 * 5 * 10 * 3


@pytest.mark.parametrize("along", ["episode", "step", "draw"])
def test_noise_is_uniform_along_each_coordinate(along: str):
    num = 20_000
    counting, zero = np.arange(num), np.zeros(num, dtype=np.int64)
    number = {
        "episode": lambda: uniform_noise(0, counting, zero, 1).ravel(),
        "step": lambda: uniform_noise(0, zero, counting, 1).ravel(),
        "draw": lambda: uniform_noise(0, zero[:1], zero[:1], num).ravel(),
    }[along]()
    share = np.histogram(number, bins=10, range=(0, 1))[0] / num
    np.testing.assert_allclose(share, 0.1, atol=0.009)  # four standard errors
    assert abs(np.corrcoef(number[:-1], number[1:])[0, 1]) < 0.03


def step_whose_hash_is_all_ones() -> np.ndarray:
    """Invert the hash: return the step of episode 0, seed 0 at which draw 0 is the largest number."""
    mask, golden = 2**64 - 1, 0x9E3779B97F4A7C15
    first, second = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

    def unshift(x: int, by: int) -> int:
        y = x
        for _ in range(64 // by + 1):
            y = x ^ (y >> by)
        return y

    def unmix(x: int) -> int:
        x = unshift(x, 31) * pow(second, -1, 2**64) & mask
        return unshift(unshift(x, 27) * pow(first, -1, 2**64) & mask, 30)

    def mix(x: int) -> int:
        x = (x ^ (x >> 30)) * first & mask
        x = (x ^ (x >> 27)) * second & mask
        return x ^ (x >> 31)

    key = mix(mix(golden) ^ golden)
    step = ((unmix((unmix(mask) - golden) & mask) ^ key) - golden) & mask
    return np.array([step], dtype=np.uint64)


def test_uniform_noise_is_below_one():
    largest = uniform_noise(0, np.array([0]), step_whose_hash_is_all_ones(), 1)
    assert 1 - 1e-15 < largest.item() < 1
    assert np.isfinite(gumbel_noise(0, np.array([0]), step_whose_hash_is_all_ones(), 1)).all()


def test_gumbel_noise_transforms_uniform_noise():
    episode, step = np.arange(50), np.arange(50)
    number = uniform_noise(3, episode, step, 4)
    gumbel = gumbel_noise(3, episode, step, 4)
    np.testing.assert_allclose(gumbel, -np.log(-np.log(number)), rtol=1e-5)
    assert gumbel.dtype == np.float32


def test_clock_numbers_episodes_by_environment_and_count():
    clock = EpisodeClock()
    rows = [[True, True, False], [False, True, False], [True, False, True], [False, False, False]]
    seen = []
    for first in rows:
        clock.tick(np.array(first), None)
        seen.append((clock.episode.tolist(), clock.step.tolist()))
    assert seen == [
        ([0, 1, 2], [0, 0, 1]),  # environment i's k-th episode is i + k · N
        ([0, 4, 2], [1, 0, 2]),
        ([3, 4, 5], [0, 1, 0]),
        ([3, 4, 5], [1, 2, 1]),
    ]


def test_clock_uses_given_episode_numbers():
    clock = EpisodeClock()
    clock.tick(np.array([True, True]), np.array([7, -1]))
    clock.tick(np.array([False, True]), np.array([7, 8]))
    assert clock.episode.tolist() == [7, 8] and clock.step.tolist() == [1, 0]


def test_clock_restarts_with_another_number_of_environments():
    clock = EpisodeClock()
    for _ in range(3):
        clock.tick(np.array([True, True]), None)
    clock.tick(np.array([True]), None)
    assert clock.episode.tolist() == [0] and clock.step.tolist() == [0]
