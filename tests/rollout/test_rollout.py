"""Rollout.record stores each part of an observation in the right slot."""

import numpy as np
import torch

from expgen.envs.vec_env import EnvSpec, Observation
from expgen.rollout.rollout import Rollout

SPEC = EnvSpec("toy", (2,), "float32", 3)
CPU = torch.device("cpu")


def observation(number: int) -> Observation:
    obs = np.full((2, 2), number, dtype=np.float32)
    return Observation(
        obs=obs,
        full=obs + 100,
        reward=np.array([number, -number], dtype=np.float32),
        first=np.array([number % 2 == 0, False]),
        level=np.array([number, 10 + number], dtype=np.int32),
        solved=np.array([False, number == 1]),
        timed_out=np.array([number == 2, False]),
    )


def test_record_stores_rewards_in_the_previous_slot():
    rollout = Rollout(SPEC, 2, 2, 0, CPU)
    for t in range(3):
        rollout.record(t, observation(t))
    rollout.finish()
    assert rollout.game_reward.tolist() == [[1, -1], [2, -2]]  # the reward of o_0 belongs to the previous rollout
    assert rollout.first.tolist() == [[True, False], [False, False], [True, False]]
    assert rollout.level.tolist() == [[0, 10], [1, 11], [2, 12]]
    assert rollout.host_solved.tolist() == [[False, False], [False, True], [False, False]]
    assert rollout.survived.tolist() == [[False, False], [False, True], [True, False]]  # by success, by time-out
    assert rollout.obs[:, 0, 0].tolist() == [0, 1, 2]


def test_record_copies_the_observation():
    rollout, seen = Rollout(SPEC, 1, 2, 0, CPU), observation(1)
    rollout.record(1, seen)
    for part in seen:
        part[:] = 0
    assert rollout.obs[1].tolist() == [[1, 1], [1, 1]]
    assert rollout.game_reward[0].tolist() == [1, -1] and rollout.level[1].tolist() == [1, 11]


def test_full_view_is_separate_only_on_request():
    alone, apart = Rollout(SPEC, 1, 2, 0, CPU), Rollout(SPEC, 1, 2, 0, CPU, full_view=True)
    for rollout in (alone, apart):
        rollout.record(0, observation(3))
    assert alone.full is alone.obs
    assert apart.full[0].tolist() == [[103, 103], [103, 103]] and apart.obs[0].tolist() == [[3, 3], [3, 3]]


def test_carry_over_uses_the_memory_after_t_steps():
    rollout = Rollout(SPEC, 3, 2, 1, CPU)
    rollout.state.copy_(torch.arange(5.0).view(5, 1, 1).expand(-1, 2, -1))
    rollout.carry_over()
    assert rollout.state[0].tolist() == [[3], [3]]


def test_rollout_keeps_pixels_as_uint8():
    assert Rollout(EnvSpec("toy", (4, 4, 3), "uint8", 3), 1, 1, 0, CPU).obs.dtype == torch.uint8
