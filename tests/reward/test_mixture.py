"""MixedReward: r_total (Eq. 9)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.reward.mixture import MixedReward, MixtureConfig
from expgen.rollout.rollout import Rollout
from expgen.runs.make_config import make_config


def make_rollout(seed: int = 0) -> Rollout:
    rollout = Rollout(EnvSpec("toy", (4, 4, 3), "uint8", 3), 20, 4, 0, torch.device("cpu"))
    rng = np.random.default_rng(seed)
    rollout.full.copy_(torch.from_numpy(rng.integers(0, 256, rollout.full.shape, dtype=np.uint8)))
    rollout.host_reward.copy_(torch.from_numpy(rng.normal(size=(20, 4))))
    rollout.host_first.copy_(torch.from_numpy(rng.random((21, 4)) < 0.1))
    rollout.finish()
    return rollout


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 1.0])
def test_mixed_reward_weighs_intrinsic_and_raw_game_reward(beta: float):
    mixed, intrinsic = MixedReward(MixtureConfig(beta=beta, reward_scale=0.5), 4), KnnReward(KnnConfig(), 4)
    for seed in range(2):
        rollout = make_rollout(seed)
        expected = beta * 0.5 * intrinsic(rollout) + (1 - beta) * rollout.game_reward
        torch.testing.assert_close(mixed(rollout), expected)
        assert torch.equal(mixed.intrinsic, intrinsic.intrinsic)  # only r_I is reported


def test_death_cost_is_part_of_the_game_reward():
    cheap, costly = (MixedReward(MixtureConfig(beta=0.25, death_cost=cost), 4) for cost in (0.0, 8.0))
    rollout = make_rollout()
    rollout.survived[5:] = True
    difference = costly(rollout) - cheap(rollout)
    torch.testing.assert_close(difference[:4], -6.0 * rollout.first[1:5])  # (1 − β) · 8
    assert rollout.first[1:5].any() and not difference[4:].any()


def test_restored_mixed_reward_continues_identically():
    mixed, other = MixedReward(MixtureConfig(), 4), MixedReward(MixtureConfig(), 4)
    mixed(make_rollout())
    other.load_state(mixed.state())
    assert torch.equal(mixed(make_rollout(1)), other(make_rollout(1)))


def test_beta_is_a_setting_of_mixed():
    config = make_config("procgen:maze", "mixed", beta=0.3, neighbor_rank=4)
    assert config.reward == MixtureConfig(neighbor_rank=4, beta=0.3)
    assert make_config("procgen:maze", "mixed").algorithm.gamma == 0.5
    with pytest.raises(InputError, match=r"--beta is 1\.5; accepted: 0 to 1"):
        make_config(algo="mixed", beta=1.5)


def test_mixed_trains_and_resumes_bit_equal(small: Any, equal: Callable[..., bool], tmp_path: Path, one_core: None):
    small.train(tmp_path / "whole", 3, algo="mixed")
    for updates in (1, 3):
        small.train(tmp_path / "parts", updates, algo="mixed", resume=True)
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "parts"))
