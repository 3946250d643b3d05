"""collect against a scripted environment."""

import numpy as np
import torch
from numpy import ndarray

from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec, Observation
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.rollout.collect import collect
from expgen.rollout.rollout import Rollout
from expgen.training.lane import PlainLane

T, N = 4, 3
SPEC = EnvSpec("scripted", (2,), "float32", 5)
CPU = torch.device("cpu")


class Scripted:
    """Environment n's episodes last n + 2 steps; every value encodes its step. Buffers are reused."""

    def __init__(self) -> None:
        self.spec, self.levels, self.num_envs = SPEC, LevelSet.parse(9), N
        self.clock, self.acted = 0, []
        obs = np.zeros((N, 2), dtype=np.float32)
        none = np.zeros(N, bool)
        self.seen = Observation(
            obs, obs, np.zeros(N, np.float32), np.ones(N, bool), np.zeros(N, np.int32), none, none.copy()
        )

    @staticmethod
    def first_at(clock: int) -> ndarray:
        return clock % (np.arange(N) + 2) == 0

    def act(self, action: ndarray) -> None:
        assert action.dtype == np.int32 and action.shape == (N,)
        self.acted.append(action.copy())
        self.clock += 1

    def observe(self) -> Observation:
        self.seen.obs[:] = self.clock + np.arange(N)[:, None] / 10
        self.seen.reward[:] = 100 * self.clock + np.arange(N)
        self.seen.first[:] = self.first_at(self.clock)
        self.seen.level[:] = 10 * self.clock + np.arange(N)
        self.seen.solved[:] = self.first_at(self.clock) & (np.arange(N) == 1)
        return self.seen

    def close(self) -> None: ...


class Counting:
    """An actor that returns action t for slot t."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout, self.started = rollout, []

    def start(self, t: int, observation: Observation) -> None:
        self.rollout.record(t, observation)
        self.started.append(t)

    def wait(self) -> ndarray:
        return np.full(N, self.started[-1], dtype=np.int32)


def check_slots(rollout: Rollout, begin: int) -> None:
    for t in range(T + 1):
        clock = begin + t
        np.testing.assert_allclose(rollout.obs[t, :, 0], clock + np.arange(N) / 10, rtol=1e-6)
        assert rollout.first[t].tolist() == Scripted.first_at(clock).tolist()
        assert rollout.level[t].tolist() == (10 * clock + np.arange(N)).tolist()
        assert rollout.host_solved[t].tolist() == [False, bool(Scripted.first_at(clock)[1]), False]
        if t < T:  # the reward of step t comes with the next observation
            assert rollout.game_reward[t].tolist() == (100 * (clock + 1) + np.arange(N)).tolist()


def test_collect_fills_the_right_slots_over_several_rollouts():
    env, rollout = Scripted(), Rollout(SPEC, T, N, 0, CPU)
    actor = Counting(rollout)
    assert len(list(collect(env, actor, rollout))) == 2 * T + 1
    rollout.finish()
    check_slots(rollout, begin=0)
    assert actor.started == [0, 1, 2, 3, 4]
    assert [action.tolist() for action in env.acted] == [[t] * N for t in range(T)]  # slot T is not played
    last = rollout.obs[T].clone()
    list(collect(env, actor, rollout))
    rollout.finish()
    assert torch.equal(rollout.obs[0], last)
    check_slots(rollout, begin=T)
    assert env.clock == 2 * T


def test_collect_advances_memory_t_times_and_stores_played_actions():
    policy = make_policy(SPEC, NetworkConfig(features=6, memory="gru"), torch.Generator().manual_seed(0), CPU)
    env, rollout = Scripted(), Rollout(SPEC, T, N, policy.state_size, CPU)
    lane, generator = PlainLane(policy, rollout), torch.Generator().manual_seed(1)
    state = torch.zeros(N, policy.state_size)
    for begin in (0, T):
        rollout.draw_noise(generator)
        list(collect(env, lane, rollout))
        for t in range(T + 1):
            assert torch.equal(rollout.state[t], state)
            with torch.no_grad():
                output = policy(rollout.obs[t : t + 1], rollout.first[t : t + 1], state)
            torch.testing.assert_close(rollout.value[t], output.value[0])
            if t < T:
                state = output.state
                assert rollout.action[t].tolist() == env.acted[begin + t].tolist()
        rollout.carry_over()
        assert torch.equal(rollout.state[0], state)
