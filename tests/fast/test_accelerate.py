"""Lanes: returned actions are the stored ones, and CUDA lanes match CPU lanes."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy import ndarray

from expgen.envs.vec_env import EnvSpec, Observation
from expgen.fast.accelerate import make_lane
from expgen.fast.cuda_lane import CudaLane
from expgen.fast.fast_networks import SHAPES_PER_ENCODER, accelerate_networks
from expgen.networks.actor_critic import NetworkConfig, Policy, make_policy, policies_in
from expgen.networks.joint import JointPolicy
from expgen.rollout.rollout import Rollout
from expgen.training.lane import Lane, PlainLane

SMALL = EnvSpec("toy", (3,), "float32", 4)
IMAGES = EnvSpec("toy", (64, 64, 3), "uint8", 15)
CPU = torch.device("cpu")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def make(
    spec: EnvSpec, memory: str, num_steps: int, num_envs: int, device: torch.device, features: int = 32
) -> tuple[Policy, Rollout]:
    network = NetworkConfig(features=features, memory=memory)  # type: ignore[arg-type]
    policy = make_policy(spec, network, torch.Generator().manual_seed(0), device)
    policy.policy_head.weight.data *= 100
    return policy, Rollout(spec, num_steps, num_envs, policy.state_size, device)


def observations(spec: EnvSpec, steps: int, num_envs: int) -> Iterator[Observation]:
    """Yield one buffer, overwritten at each step as environments do, with images of different brightness."""
    rng = np.random.default_rng(0)
    obs = np.zeros((num_envs, *spec.obs_shape), dtype=spec.obs_dtype)
    for t in range(steps):
        if spec.obs_dtype == "uint8":
            obs[:] = rng.integers(1 + rng.integers(256, size=(num_envs, 1, 1, 1)), size=obs.shape)
        else:
            obs[:] = rng.normal(size=obs.shape)
        first = np.full(num_envs, True) if t == 0 else rng.random(num_envs) < 0.3
        zeros = np.zeros(num_envs, dtype=np.float32)
        yield Observation(obs, obs, zeros, first, zeros.astype(np.int32), zeros.astype(bool), zeros.astype(bool))


def play(lane: Lane, rollout: Rollout, spec: EnvSpec) -> list[ndarray]:
    actions = []
    for t, observation in enumerate(observations(spec, rollout.num_steps + 1, rollout.num_envs)):
        lane.start(t, observation)
        actions.append(lane.wait().copy())
    return actions


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_plain_lane_returns_the_actions_it_stores(memory: str):
    policy, rollout = make(SMALL, memory, 5, 6, CPU)
    rollout.draw_noise(torch.Generator().manual_seed(0))
    lane = PlainLane(policy, rollout)
    actions = play(lane, rollout, SMALL)
    assert actions[0].dtype == np.int32 and actions[0].shape == (6,)
    assert np.array_equal(np.stack(actions), rollout.action.numpy())
    assert len(np.unique(rollout.action)) > 1
    assert lane.backlog() == 0
    with lane.updating():
        pass


def test_plain_lane_uses_updated_weights():
    policy, rollout = make(SMALL, "none", 1, 50, CPU)
    lane = PlainLane(policy, rollout)
    policy.policy_head.bias.data[2] = 1e6
    observation = next(observations(SMALL, 1, 50))
    lane.start(0, observation)
    assert lane.wait().tolist() == [2] * 50


def test_compile_limits_are_raised_for_every_encoder(monkeypatch: pytest.MonkeyPatch):
    """LEEP's encoders share one class, and torch limits the compilations per class."""
    limits = torch._dynamo.config
    monkeypatch.setattr(limits, "cache_size_limit", 8)
    monkeypatch.setattr(limits, "accumulated_cache_size_limit", 256)
    network, members = NetworkConfig(encoder="impala", width=2, features=8), 50  # not supported by our kernels
    policy = JointPolicy(IMAGES, network, members)
    accelerate_networks(policy)
    assert all(member.encode != member.encoder.forward for member in policies_in(policy))
    assert limits.cache_size_limit >= SHAPES_PER_ENCODER * members
    assert limits.accumulated_cache_size_limit >= limits.cache_size_limit


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("memory", ["none", "gru"])
def test_cuda_lane_acts_like_plain_lane(memory: str):
    """Same weights and noise, two rollouts: bf16 convolutions change values a little and few actions."""
    steps, num_envs = 6, 64
    plain_policy, plain = make(IMAGES, memory, steps, num_envs, CPU, features=256)
    cuda_policy, cuda = make(IMAGES, memory, steps, num_envs, torch.device("cuda"), features=256)
    lanes = PlainLane(plain_policy, plain), make_lane(cuda_policy, cuda)
    assert isinstance(lanes[1], CudaLane)
    assert not cuda.state.any()  # capturing does not change the memory
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        plain.draw_noise(generator)
        with lanes[1].updating():
            cuda.noise.copy_(plain.noise)
        play(lanes[0], plain, IMAGES)
        actions = play(lanes[1], cuda, IMAGES)
        with lanes[1].updating():
            cuda.finish()
        torch.cuda.synchronize()
        assert np.array_equal(np.stack(actions), cuda.action.cpu().numpy())
        assert torch.equal(cuda.obs.cpu(), plain.obs) and torch.equal(cuda.first.cpu(), plain.first)
        error = (cuda.value.cpu() - plain.value).abs()
        assert error.max() < 0.25 * plain.value.std() and error.mean() < 0.05 * plain.value.std()
        same = cuda.action.cpu() == plain.action
        assert same.float().mean() > 0.9
        torch.testing.assert_close(cuda.log_prob.cpu()[same], plain.log_prob[same], atol=0.05, rtol=0.02)
        torch.testing.assert_close(cuda.state.cpu(), plain.state, atol=0.02, rtol=0.02)
        with lanes[1].updating():
            cuda.carry_over()
        plain.carry_over()
    lanes[1].close()


@pytest.mark.gpu
@needs_cuda
def test_cuda_lane_uses_updated_weights():
    policy, rollout = make(IMAGES, "none", 2, 16, torch.device("cuda"))
    lane = make_lane(policy, rollout)
    with lane.updating(), torch.no_grad():
        policy.policy_head.bias[7] = 1e6
    assert all((action == 7).all() for action in play(lane, rollout, IMAGES))
    lane.close()


@pytest.mark.gpu
@needs_cuda
def test_two_cuda_lanes_can_share_an_environment():
    """The buffer is page-locked already for the second lane; that must not break later launches."""
    observation, lanes = next(observations(IMAGES, 1, 16)), []
    for _ in range(2):
        policy, rollout = make(IMAGES, "none", 1, 16, torch.device("cuda"))
        lanes.append(make_lane(policy, rollout))
        lanes[-1].start(0, observation)
        assert lanes[-1].wait().shape == (16,)
        assert torch.ones(3, device="cuda").sum().item() == 3
    for lane in lanes:  # memory freed while page-locked corrupts later copies at the same address
        lane.close()
