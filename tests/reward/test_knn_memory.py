"""The frames that KnnReward stores: saved, loaded, discarded."""

import numpy as np
import pytest
import torch

from expgen.reward.knn import KnnConfig, KnnReward
from tests.reward.walks import film, rollouts


@pytest.mark.parametrize("number", [0, 1, 2])
def test_reward_restored_mid_episode_continues_identically(number: int):
    made, config = rollouts(film(81, chance=0.01), 20), KnnConfig(memory_length=30)
    source, other = KnnReward(config, 3), KnnReward(config, 3)
    for rollout in made[:number]:
        source(rollout)
    other.load_state({name: array.copy() for name, array in source.state().items()})
    for rollout in made[number:]:
        assert torch.equal(source(rollout), other(rollout))


def test_only_frames_of_current_episodes_are_saved():
    source = KnnReward(KnnConfig(memory_length=30), 3)
    first = np.zeros((41, 3), dtype=bool)
    first[0] = first[33] = True
    for rollout in rollouts((film(41)[0], first), 20):
        source(rollout)
    assert source.state()["shape"].tolist() == [7, 3, 4, 3] and source.state()["age"].tolist() == [7, 7, 7]
    assert source.frames is not None and len(source.frames) == 29


def test_game_restarted_after_loading_discards_old_frames():
    """Games that cannot be saved open a new episode when a run resumes."""
    walk, config = film(41, chance=0.0), KnnConfig(neighbor_rank=1)
    one, two = rollouts(walk, 20)
    two.host_first[0] = True
    two.finish()
    source, fresh = KnnReward(config, 3), KnnReward(config, 3)
    source(one)
    assert torch.equal(source(two), fresh(two))
