"""KnnReward against a double loop, and by hand."""

from typing import Any

import numpy as np
import pytest
import torch

from expgen.errors import InputError
from expgen.reward.knn import LOG_FLOOR, KnnConfig, reward_from
from expgen.runs.make_config import make_config
from tests.reward.walks import film, oracle, reward_of


@pytest.mark.parametrize("distance", ["l2", "l0"])
@pytest.mark.parametrize("neighbor_rank", [1, 2, 3, 5])
@pytest.mark.parametrize(("pool", "memory_length", "num_steps"), [(3, 500, 25), (1, 7, 10), (2, 1, 25), (2, 40, 6)])
def test_intrinsic_reward_equals_a_double_loop(
    distance: Any, neighbor_rank: int, pool: int, memory_length: int, num_steps: int
):
    """Episodes span three or more rollouts and are longer than the memory."""
    walk = film(151)
    config = KnnConfig(neighbor_rank, distance, "raw", memory_length, pool)
    np.testing.assert_allclose(reward_of(walk, num_steps, config)[:150], oracle(walk, config)[:150], atol=1e-6)


@pytest.mark.parametrize("transform", ["log", "log1p"])
@pytest.mark.parametrize("distance", ["l2", "l0"])
def test_transformed_reward_equals_a_double_loop(transform: Any, distance: Any):
    walk, config = film(61), KnnConfig(2, distance, transform)
    np.testing.assert_allclose(reward_of(walk, 20, config), oracle(walk, config), atol=1e-6)


def test_float_vectors_are_not_pooled():
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(41, 2, 4)).astype(np.float32)[rng.integers(0, 41, 41)]
    first = rng.random((41, 2)) < 0.05
    first[0] = True
    as_picture = frames[:, :, :, None, None] * 255  # the oracle divides
    for rank, distance in ((1, "l2"), (2, "l2"), (2, "l0")):
        config = KnnConfig(rank, distance, pool=1)  # type: ignore[arg-type]
        reward = reward_of((frames, first), 20, config)
        np.testing.assert_allclose(reward, oracle((as_picture, first), config), atol=1e-6)
        assert rank > 1 or (reward == 0).any()


def by_hand(values: list[int], first: list[int], **settings: Any) -> list[float]:
    """Return r_I of one environment with one grey pixel, in units of 1 / 255."""
    frames = np.repeat(np.array(values, dtype=np.uint8)[:, None, None, None, None], 3, axis=-1)
    walk = frames, np.array(first, dtype=bool)[:, None]
    config = KnnConfig(**{"pool": 1, **settings})
    reward = reward_of(walk, len(values) - 1, config)[:, 0]
    return [round(float(r) * 255 / 3**0.5, 4) if config.distance == "l2" else float(r) for r in reward]


def test_intrinsic_reward_of_a_walk_by_hand():
    """Grey levels 10, 13, 11, 11 | 40, 50, 50: distances to earlier frames of the episode."""
    values, first = [10, 13, 11, 11, 40, 50, 50], [1, 0, 0, 0, 1, 0, 0]
    # 13: {3}; 11: {1, 2}; 11: {1, 2, 0}; the end; 50: {10}; 50: {10, 0}
    assert by_hand(values, first, neighbor_rank=1) == [3, 1, 0, 0, 10, 0]
    assert by_hand(values, first, neighbor_rank=2) == [3, 2, 1, 0, 10, 10]
    assert by_hand(values, first, neighbor_rank=3) == [3, 2, 2, 0, 10, 10]
    assert by_hand(values, first, neighbor_rank=2, memory_length=2) == [3, 2, 2, 0, 10, 10]
    assert by_hand(values, first, neighbor_rank=2, memory_length=1) == [3, 2, 0, 0, 10, 0]
    assert by_hand(values, first, neighbor_rank=1, distance="l0") == [1, 1, 0, 0, 1, 0]  # counts cells, not channels


def test_reward_from_squared_distances_by_hand():
    """Four frames: the second nearest of three; the farther of two; the only one; none, as it opens an episode."""
    squared = torch.tensor([[36.0, 9, 81, 1], [36, 9, 0, 0], [0, 0, 4, 0], [9, 9, 9, 9]], dtype=torch.float64)
    is_other = torch.tensor([[0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]], dtype=torch.bool)
    num_earlier, first = (~is_other).sum(1, keepdim=True), is_other.all(1)
    for settings, scale, expected in (({}, 3, [2, 2, 2 / 3, 0]), ({"distance": "l0"}, 3, [6, 6, 2, 0])):
        found = reward_from(squared.clone(), is_other, num_earlier, first, scale, KnnConfig(**settings))
        assert found.dtype == torch.float32 and found.tolist() == pytest.approx(expected)


def test_choice_log_of_zero_distance():
    frames = np.zeros((3, 1, 1, 1, 3), dtype=np.uint8)
    walk = frames, np.array([[True], [False], [True]])
    assert reward_of(walk, 2, KnnConfig(pool=1, reward_transform="log")).tolist() == [
        [pytest.approx(np.log(LOG_FLOOR))],
        [0],  # the step that ended the episode
    ]
    assert reward_of(walk, 2, KnnConfig(pool=1, reward_transform="log1p")).tolist() == [[0], [0]]


def test_choice_first_frame_of_an_episode_is_compared():
    assert by_hand([10, 20, 10], [1, 0, 0], neighbor_rank=1) == [10, 0]


def test_choice_frame_at_a_rollout_boundary_is_compared():
    """The original code replaces it by a black image."""
    frames = np.full((9, 1, 1, 1, 3), 200, dtype=np.uint8)
    first = np.zeros((9, 1), dtype=bool)
    first[[0, 4]] = True  # an episode opens exactly at the boundary
    assert not reward_of((frames, first), 4, KnnConfig(pool=1)).any()
    first[4] = False  # an episode continues across it, and only the frame at the boundary is new
    frames[4] = frames[6] = 100
    reward = reward_of((frames, first), 4, KnnConfig(neighbor_rank=1, pool=1))
    assert (reward[:, 0] > 0).tolist() == [False, False, False, True, False, False, False, False]


def test_intrinsic_reward_rejects_bad_settings():
    for settings, message in (
        ({"neighbor_rank": 0}, "--neighbor-rank is 0; accepted: 1 or more"),
        ({"memory_length": 0}, "--memory-length is 0"),
        ({"pool": 12}, "--pool is 12; accepted: 1 to 11"),
        ({"distance": "l1"}, "--distance is 'l1'; accepted: l2, l0"),
        ({"reward_transform": "exp"}, "--reward-transform is 'exp'"),
    ):
        with pytest.raises(InputError, match=message):
            make_config(algo="maxent", **settings)
    walk = film(11, shape=(6, 6, 5))
    with pytest.raises(InputError, match="--distance is l0 for 5 channels"):
        reward_of(walk, 10, KnnConfig(distance="l0"))
