"""Counter-based random numbers: SplitMix64's published values, and draws that must not change."""

import numpy as np

from expgen.random import counter_hash, draw_below, stream_seed, uniform_noise


def test_counter_hash_is_splitmix64() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]  # seed 1234567
    assert counter_hash(np.array([1234567], np.uint64), np.arange(3, dtype=np.uint64)).tolist() == published


def test_draw_below_reaches_both_ends() -> None:
    assert draw_below(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 10).tolist() == [0, 5, 9]


def test_noise_is_unchanged_since_published_scores() -> None:
    noise = uniform_noise(3, np.array([0, 7]), np.array([2, 5]), 2).tolist()
    assert noise == [[0.24675787687095896, 0.16273406691628967], [0.8591620432671775, 0.7982390101459623]]
    assert [stream_seed(3, stream) for stream in range(3)] == [3, 10451216379200822465, 16834447057089888969]
