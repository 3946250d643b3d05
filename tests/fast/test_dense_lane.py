"""DenseLane compared with PlainLane: the same weights and noise give the same rollout."""

from pathlib import Path

import numpy as np
import pytest
import torch

from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.algorithms.recipes import build_algorithm, recipe_of
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec, VecEnv
from expgen.fast import accelerate
from expgen.fast.accelerate import make_lane
from expgen.fast.dense_lane import DenseLane
from expgen.fast.dense_ppo import DensePPO
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy
from expgen.reward.source import GameReward, GameRewardConfig
from expgen.rollout.collect import collect
from expgen.rollout.rollout import Rollout
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.lane import Lane, PlainLane
from expgen.training.learner import Learner, Schedule
from expgen.training.learner_state import resume_learner, save_learner

CPU = torch.device("cpu")
T, N = 12, 16
SMALL = EnvSpec("toy", (3,), "float32", 4)


def setting() -> tuple[VecEnv, Policy, Rollout]:
    env = make_env("minimaze", levels=20, num_envs=N, seed=0)
    policy = make_policy(env.spec, NetworkConfig(features=32), torch.Generator().manual_seed(0), CPU)
    policy.policy_head.weight.data *= 100  # far from uniform
    return env, policy, Rollout(env.spec, T, N, 0, CPU)


def play(env: VecEnv, lane: Lane, rollout: Rollout) -> None:
    for _ in collect(env, lane, rollout):
        pass


def test_dense_lane_collects_the_same_rollout_as_plain_lane():
    (env, policy, rollout), (plain_env, plain_policy, plain) = setting(), setting()
    lane, plain_lane = make_lane(policy, rollout), PlainLane(plain_policy, plain)
    assert isinstance(lane, DenseLane)
    for seed in range(2):
        for each in (rollout, plain):
            each.draw_noise(torch.Generator().manual_seed(seed))
        play(env, lane, rollout)
        play(plain_env, plain_lane, plain)
        for name in ("obs", "first", "action", "host_reward", "level"):
            assert torch.equal(getattr(rollout, name), getattr(plain, name)), name
        torch.testing.assert_close(rollout.log_prob, plain.log_prob, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(rollout.value, plain.value, rtol=1e-4, atol=1e-5)
        assert len(rollout.action.unique()) > 1 and rollout.log_prob.std() > 0
        expected = plain.obs.flatten(2).float() * (2 / 255) - 1
        torch.testing.assert_close(lane.rows[..., :-1], expected)
        assert (lane.rows[..., -1] == 1).all()


def test_dense_lane_uses_updated_weights():
    env, policy, rollout = setting()
    lane = make_lane(policy, rollout)
    with torch.no_grad():
        policy.policy_head.bias[2] = 1e6
    lane.start(0, env.observe())
    assert lane.wait().dtype == np.int32 and lane.wait().tolist() == [2] * N


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_make_lane_uses_dense_lane_only_without_memory(memory: str):
    network = NetworkConfig(features=8, memory=memory)  # type: ignore[arg-type]
    policy = make_policy(SMALL, network, torch.Generator().manual_seed(0), CPU)
    lane = make_lane(policy, Rollout(SMALL, T, N, policy.state_size, CPU))
    assert type(lane) is (DenseLane if memory == "none" else PlainLane)


def test_make_lane_uses_plain_lane_for_large_observations_and_other_dtypes():
    wide = EnvSpec("toy", (accelerate.DENSE_MAX_INPUTS + 1,), "float32", 4)
    policy = make_policy(wide, NetworkConfig(features=8), torch.Generator().manual_seed(0), CPU)
    assert type(make_lane(policy, Rollout(wide, 1, 2, 0, CPU))) is PlainLane
    policy = make_policy(SMALL, NetworkConfig(features=8), torch.Generator().manual_seed(0), CPU).double()
    assert type(make_lane(policy, Rollout(SMALL, 1, 2, 0, CPU))) is PlainLane


def test_accelerate_does_not_replace_subclasses_of_ppo():
    class OtherPPO(PPO):
        """May have changed the loss."""

    algorithm = build_algorithm(recipe_of("ppo"), SMALL, NetworkConfig(features=8), recipe_of("ppo").config, 0, CPU)
    rollout = Rollout(SMALL, T, N, 0, CPU)
    other = OtherPPO(algorithm.policy, algorithm.config)
    assert accelerate.accelerate(other, rollout)[0] is other
    assert isinstance(accelerate.accelerate(algorithm, rollout)[0], DensePPO)


def learner() -> Learner:
    env = make_env("minimaze", levels=20, num_envs=N, seed=0)
    config = PPOConfig(epochs=2, minibatches=2, minibatch_order="shuffled")
    algorithm = build_algorithm(recipe_of("ppo"), env.spec, NetworkConfig(features=16), config, 0, CPU)
    reward, rollout = GameReward(GameRewardConfig(), N), Rollout(env.spec, T, N, 0, CPU)
    algorithm, lane = accelerate.accelerate(algorithm, rollout)
    schedule = Schedule(10**9, 0, 1e9)
    return Learner(
        "m0", env=env, algorithm=algorithm, lane=lane, reward=reward, rollout=rollout, schedule=schedule, seed=0
    )


def trained(learner: Learner, updates: int) -> Learner:
    for _ in range(updates):
        for _ in learner.iterate():
            pass
    return learner


@pytest.mark.parametrize("from_dense", [True, False])
def test_checkpoint_resumes_between_dense_and_plain_learner(
    from_dense: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def build(is_dense: bool) -> Learner:
        with monkeypatch.context() as patch:
            if not is_dense:
                patch.setattr(accelerate, "is_dense", lambda policy: False)
            made = learner()
        assert isinstance(made.lane, DenseLane) == isinstance(made.algorithm, DensePPO) == is_dense
        return made

    whole = trained(build(from_dense), 2)
    save_learner(trained(build(from_dense), 1), tmp_path)
    rest = build(not from_dense)
    checkpoint = latest_checkpoint(tmp_path)
    assert checkpoint is not None
    resume_learner(rest, checkpoint)
    trained(rest, 1)
    assert torch.equal(rest.rollout.action[:-1], whole.rollout.action[:-1])
    one, other = rest.algorithm.state(), whole.algorithm.state()
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-3, atol=1e-4)
