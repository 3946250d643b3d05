"""ReplayedPolicy gives the policy's output for any number of environments; on the CPU with a fake of CUDA graphs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from expgen.agents.agent import PolicyAgent
from expgen.agents.ensemble import Ensemble
from expgen.envs.vec_env import EnvSpec
from expgen.fast.fast_networks import MIN_BATCH, ReplayedPolicy, for_play, padded
from expgen.networks.actor_critic import NetworkConfig, Policy, PolicyOutput, make_policy

SPEC = EnvSpec("toy", (16, 16, 3), "uint8", 5)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def fake_capture(body: Callable[[], PolicyOutput]) -> tuple[PolicyOutput, Callable[[], None]]:
    """A capture function for the CPU: replay writes to the same output tensors, as a CUDA graph does."""
    output = body()

    def replay() -> None:
        for buffer, value in zip(output, body(), strict=True):
            buffer.copy_(value)

    return output, replay


def make(memory: Any, device: str = "cpu", encoder: Any = "small", seed: int = 0) -> Policy:
    network = NetworkConfig(encoder=encoder, features=32, memory=memory)
    policy = make_policy(SPEC, network, torch.Generator().manual_seed(seed), torch.device(device)).eval()
    with torch.no_grad():
        policy.policy_head.weight.mul_(100)  # new heads give nearly equal logits for all inputs
    return policy


def policy_inputs(count: int, state_size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    obs = torch.randint(256, (1, count, *SPEC.obs_shape), generator=generator, dtype=torch.uint8)
    first = torch.rand(1, count, generator=generator) < 0.3
    return obs, first, torch.randn(count, state_size, generator=generator)


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_replayed_policy_matches_the_policy(memory: str) -> None:
    policy = make(memory)
    replayed = ReplayedPolicy(policy, fake_capture)
    kept = []
    for seed, count in enumerate([5, 40, 1, 33, 64, 5]):
        inputs = policy_inputs(count, policy.state_size, seed)
        with torch.no_grad():
            exact = policy(*inputs)
        found = replayed(*inputs)
        kept.append((found, exact))
    for found, exact in kept:  # later replays do not overwrite earlier outputs
        for one, other in zip(found, exact, strict=True):
            torch.testing.assert_close(one, other)
    assert set(replayed.recordings) == {MIN_BATCH, 64}


def test_padded_appends_zeros() -> None:
    tensor = torch.ones(1, 3, 2)
    assert padded(tensor, 1, 3) is tensor
    longer = padded(tensor, 1, 5)
    assert longer.shape == (1, 5, 2) and longer[:, :3].eq(1).all() and longer[:, 3:].eq(0).all()


def test_agents_and_ensembles_accept_a_replayed_policy() -> None:
    policies = [make("none", seed=seed) for seed in range(3)]
    replayed: list[Any] = [ReplayedPolicy(policy, fake_capture) for policy in policies]
    obs = policy_inputs(7, 0, 0)[0][0]
    torch.testing.assert_close(Ensemble(replayed).logits(obs), Ensemble(policies).logits(obs))
    first = np.ones(7, dtype=bool)
    actions = [PolicyAgent(policy).act(obs.numpy(), first) for policy in (policies[0], replayed[0])]
    assert np.array_equal(*actions) and len(set(actions[0].tolist())) > 1


@pytest.mark.parametrize("encoder", ["small", "conv"])
def test_for_play_returns_a_frozen_copy(encoder: str) -> None:
    policy = make("gru", encoder=encoder).train()
    frozen, inputs = for_play(policy), policy_inputs(5, policy.state_size, 0)
    for one, other in zip(frozen(*inputs), policy(*inputs), strict=True):
        torch.testing.assert_close(one, other)
    assert not frozen.training and policy.training and policy.encode == policy.encoder.forward
    assert not any(weight.requires_grad for weight in frozen.parameters())
    assert all(weight.requires_grad for weight in policy.parameters())
    assert not {weight.data_ptr() for weight in frozen.parameters()} & {own.data_ptr() for own in policy.parameters()}


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("memory", ["none", "gru"])
def test_replayed_policy_on_a_gpu_is_close_to_the_policy(memory: str) -> None:
    """bf16 convolutions change the logits a little."""
    plain, fast = make(memory, "cuda", "impala"), for_play(make(memory, "cuda", "impala"))
    assert isinstance(fast, ReplayedPolicy)
    for seed, count in enumerate([5, 100, 5, 256]):
        inputs = [part.cuda() for part in policy_inputs(count, plain.state_size, seed)]
        with torch.no_grad():
            exact = plain(*inputs)
        for one, other in zip(fast(*inputs), exact, strict=True):
            assert (one - other).norm() <= 0.03 * other.norm()
