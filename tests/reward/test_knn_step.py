"""KnnStepReward equals KnnReward for all settings, and rejects bad input."""

import time
from typing import Any

import numpy as np
import pytest

from expgen.errors import InputError
from expgen.reward.knn import KnnConfig
from expgen.reward.knn_step import KnnStepReward
from tests.reward.walks import Film, film, oracle, reward_of


def stepped(walk: Film, config: KnnConfig) -> np.ndarray:
    """Return r_I of every step of `walk`."""
    reward = KnnStepReward(config, walk[0].shape[1])
    return np.stack([reward(*frame) for frame in zip(*walk)])[1:]


@pytest.mark.parametrize("distance", ["l2", "l0"])
@pytest.mark.parametrize("transform", ["raw", "log", "log1p"])
@pytest.mark.parametrize(("rank", "memory_length", "pool"), [(2, 500, 3), (1, 7, 1), (3, 1, 2), (5, 40, 2), (2, 16, 1)])
def test_step_reward_equals_rollout_reward_for_images(
    distance: Any, transform: Any, rank: int, memory_length: int, pool: int
) -> None:
    walk, config = film(151), KnnConfig(rank, distance, transform, memory_length, pool)
    np.testing.assert_array_equal(stepped(walk, config), reward_of(walk, 25, config).numpy())


def test_step_reward_equals_a_double_loop() -> None:
    walk, config = film(61), KnnConfig()
    np.testing.assert_allclose(stepped(walk, config), oracle(walk, config), atol=1e-6)


@pytest.mark.parametrize("distance", ["l2", "l0"])
def test_step_reward_equals_rollout_reward_for_vectors(distance: Any) -> None:
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(41, 2, 4)).astype(np.float32)[rng.integers(0, 41, 41)]
    first = rng.random((41, 2)) < 0.05
    first[0] = True
    config = KnnConfig(2, distance, pool=1)
    np.testing.assert_allclose(
        stepped((frames, first), config), reward_of((frames, first), 20, config).numpy(), rtol=1e-6
    )


def test_step_reward_of_grey_frames_by_hand() -> None:
    """10, 13, 11, 11 | 40, 50, 50: distances to the second nearest earlier frame of the episode."""
    reward = KnnStepReward(KnnConfig(pool=1))
    paid = [
        float(reward(np.full((1, 1, 1, 1), grey, dtype=np.uint8), np.array([opens]))[0]) * 255
        for grey, opens in zip([10, 13, 11, 11, 40, 50, 50], [True, False, False, False, True, False, False])
    ]
    np.testing.assert_allclose(paid, [0, 3, 2, 1, 0, 10, 10], atol=1e-4)


def test_step_with_500_earlier_frames_takes_less_than_a_millisecond() -> None:
    """Measures the fastest of many steps on one core, because the machine may be busy."""
    rng, reward = np.random.default_rng(0), KnnStepReward()
    frames = rng.integers(0, 256, (560, 1, 64, 64, 3), dtype=np.uint8)
    seconds = []
    for number, frame in enumerate(frames):
        began = time.perf_counter()
        reward(frame, np.array([number == 0]))
        seconds.append(time.perf_counter() - began)
    assert reward.count.tolist() == [560] and min(seconds[501:]) < 1e-3


PICTURE, BEGINS = np.zeros((2, 6, 6, 3), dtype=np.uint8), np.ones(2, dtype=bool)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0; accepted: 1 or more"),
        ({"num_envs": 2.0}, "num_envs is 2.0; accepted: a whole number"),
        ({"config": KnnConfig(neighbor_rank=0)}, "--neighbor-rank is 0; accepted: 1 or more"),
        ({"config": KnnConfig(memory_length=0)}, "--memory-length is 0; accepted: 1 or more"),
        ({"config": KnnConfig(pool=12)}, "--pool is 12; accepted: 1 to 11"),
        ({"config": KnnConfig(distance="l1")}, "--distance is 'l1'; accepted: l2, l0"),  # type: ignore[arg-type]
        (
            {"config": KnnConfig(reward_transform="exp")},  # type: ignore[arg-type]
            "--reward-transform is 'exp'; accepted: raw, log, log1p",
        ),
        ({"config": KnnConfig(reward_scale=float("nan"))}, "--reward-scale is nan; accepted: a finite number"),
    ],
)
def test_step_reward_rejects_bad_settings_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        KnnStepReward(**settings)


@pytest.mark.parametrize(
    ("frame", "first", "message"),
    [
        (PICTURE[:1], BEGINS, r"frame has shape \(1, 6, 6, 3\); accepted: \(2, 6, 6, 3\)"),
        (PICTURE[:, :5], BEGINS, r"frame has shape \(2, 5, 6, 3\); accepted: \(2, 6, 6, 3\)"),
        (PICTURE[0, 0, 0], BEGINS, r"frame has shape \(3,\); accepted: \(2, …\)"),
        (PICTURE.astype(np.float64), BEGINS, r"frame has dtype float64; accepted: uint8 .* or float32"),
        (PICTURE.astype(np.int64), BEGINS, "frame has dtype int64"),
        (PICTURE * np.float32("nan"), BEGINS, "frame has values that are not finite"),
        ("pixels", BEGINS, "frame has dtype <U6"),
        (PICTURE, BEGINS[:1], r"first is \[True\]; accepted: 2 booleans"),
        (PICTURE, BEGINS[:, None], "first is .*; accepted: 2 booleans"),
        (PICTURE, BEGINS.astype(int), r"first is \[1, 1\]; accepted: 2 booleans"),
        (PICTURE, True, r"first is \[True\]; accepted: 2 booleans"),
        (PICTURE, None, "first is .*; accepted: 2 booleans"),
    ],
)
def test_step_reward_rejects_bad_frames_in_one_line(frame: Any, first: Any, message: str) -> None:
    reward = KnnStepReward(num_envs=2)
    reward(PICTURE, BEGINS)
    with pytest.raises(InputError, match=message) as refusal:
        reward(frame, first)
    assert "\n" not in str(refusal.value)


def test_step_reward_rejects_a_first_call_without_episode_start() -> None:
    with pytest.raises(InputError, match="first is False in the first call; accepted: True"):
        KnnStepReward()(PICTURE[:1], np.array([False]))


def test_step_reward_rejects_a_pool_larger_than_the_image() -> None:
    with pytest.raises(InputError, match="--pool is 9 for images with a side of 6; accepted: 1 to 6"):
        KnnStepReward(KnnConfig(pool=9), 2)(PICTURE, BEGINS)


def test_step_reward_repr_is_short() -> None:
    assert repr(KnnStepReward(num_envs=2)) == "KnnStepReward(2 environments, frames [0, 0])"
