"""KnnReward does not depend on block sizes, other environments, rollout lengths or the device."""

from typing import Any

import numpy as np
import pytest
import torch

from expgen.reward import knn
from expgen.reward.knn import KnnConfig, KnnReward
from tests.reward.walks import film, reward_of, rollouts


def test_intrinsic_reward_does_not_depend_on_block_sizes(monkeypatch: pytest.MonkeyPatch):
    walk, config = film(151, num_envs=5, chance=0.02), KnnConfig(memory_length=20)
    whole = reward_of(walk, 50, config)
    monkeypatch.setattr(knn, "_QUERIES", 7)
    monkeypatch.setattr(knn, "_CHUNK_BYTES", 2 * 8 * 71 * 12)  # two environments at most
    assert torch.equal(reward_of(walk, 50, config), whole)


def test_revisit_has_exactly_zero_reward_for_large_images():
    rng = np.random.default_rng(0)
    few = rng.integers(0, 256, (4, 1, 64, 64, 3), dtype=np.uint8)
    frames = few[[0, 1, 2, 3, 2, 1, 0, 3, 1]]
    first = np.zeros((9, 1), dtype=bool)
    first[0] = True
    for distance in ("l2", "l0"):
        reward = reward_of((frames, first), 8, KnnConfig(neighbor_rank=1, distance=distance))  # type: ignore[arg-type]
        assert (reward[:3] > 0).all() and reward[3:].eq(0).all()


def test_intrinsic_reward_ignores_other_environments_and_episodes():
    frames, first = film(91, num_envs=3)
    reward = reward_of((frames, first), 30, KnnConfig())
    alone = reward_of((frames[:, 1:2], first[:, 1:2]), 30, KnnConfig())
    assert torch.equal(reward[:, 1:2], alone)
    start, end = np.flatnonzero(first[:, 1])[1:3]
    assert end - start > 2
    changed = frames.copy()
    changed[:start] = 255 - changed[:start]
    changed[end:] = 255 - changed[end:]
    again = reward_of((changed, first), 30, KnnConfig())
    assert torch.equal(reward[start : end - 1, 1], again[start : end - 1, 1])


def test_intrinsic_reward_does_not_depend_on_rollout_length():
    walk, config = film(61, chance=0.03), KnnConfig(memory_length=11)
    whole = reward_of(walk, 60, config)
    for num_steps in (30, 12, 4, 1):
        assert torch.equal(reward_of(walk, num_steps, config), whole)


def test_reward_scale_affects_learning_but_not_reporting():
    plain, scaled = KnnReward(KnnConfig(), 3), KnnReward(KnnConfig(reward_scale=0.25), 3)
    for rollout in rollouts(film(41), 20):
        assert torch.equal(scaled(rollout), 0.25 * plain(rollout))
        assert torch.equal(scaled.intrinsic, plain.intrinsic)


@pytest.mark.gpu
@pytest.mark.parametrize("distance", ["l2", "l0"])
def test_gpu_reward_equals_cpu_without_synchronisation(distance: Any):
    walk, config = film(151, num_envs=5, chance=0.02), KnnConfig(distance=distance, memory_length=60)
    device = torch.device("cuda")
    torch.testing.assert_close(reward_of(walk, 50, config, device), reward_of(walk, 50, config), atol=1e-6, rtol=1e-6)
    source, (one, two, three) = KnnReward(config, 5), rollouts(walk, 50, device)
    source(one)
    source(two)
    torch.cuda.set_sync_debug_mode("error")
    try:
        source(three)
    finally:
        torch.cuda.set_sync_debug_mode("default")
