"""A graph's gradient steps are PPO's own."""

import copy

import pytest
import torch
from torch import Tensor

from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig, make_policy
from expgen.rollout.minibatch import gather, minibatch_places, minibatches
from expgen.rollout.rollout import Rollout
from expgen.training.captured_ppo import CapturedPPO

PICTURES = EnvSpec("toy", (16, 16, 3), "uint8", 5)
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def filled(device: str) -> Rollout:
    """Made-up transitions, the same on every device."""
    generator = torch.Generator().manual_seed(0)
    rollout = Rollout(PICTURES, 8, 6, 0, torch.device(device))
    rollout.obs.copy_(torch.randint(0, 256, rollout.obs.shape, generator=generator, dtype=torch.uint8))
    rollout.action.copy_(torch.randint(0, 5, rollout.action.shape, generator=generator))
    for tensor in (rollout.value, rollout.advantage, rollout.value_target):
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    rollout.log_prob.fill_(-1.6)
    return rollout


def learner(device: str, config: PPOConfig) -> PPO:
    network = NetworkConfig(encoder="impala", features=32)
    return PPO(make_policy(PICTURES, network, torch.Generator().manual_seed(1), torch.device(device)), config)


@pytest.mark.parametrize("order", ["columns", "shuffled"])
def test_places_and_gather_are_the_minibatches(order: str) -> None:
    rollout = filled("cpu")
    whole = minibatches(rollout, rollout.advantage, 3, order, torch.Generator().manual_seed(5))
    places = minibatch_places(rollout, 3, order, torch.Generator().manual_seed(5))
    for batch, place in zip(whole, places, strict=True):
        again = gather(rollout, rollout.advantage, place, order)
        assert all(torch.equal(a, b) for a, b in zip(batch, again, strict=True))


def weights(algorithm: PPO | CapturedPPO) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in algorithm.policy.parameters()])


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("minibatches", [4, 5])  # all of one size, or of two sizes
def test_captured_steps_are_the_plain_ones(minibatches: int) -> None:
    """Over two updates and through a checkpoint: the same weights, moments and metrics."""
    config = PPOConfig(epochs=2, minibatches=minibatches, minibatch_order="shuffled")
    rollout, plain = filled("cuda"), learner("cuda", config)
    captured = CapturedPPO(copy.deepcopy(plain), rollout)
    before = weights(plain).clone()
    for seed in range(2):
        exact = list(plain.update(rollout, torch.Generator("cuda").manual_seed(seed)))
        found = list(captured.update(rollout, torch.Generator("cuda").manual_seed(seed)))
        assert len(found) == len(exact) and found[0].keys() == exact[0].keys()
        for name in exact[0]:
            torch.testing.assert_close(found[-1][name], exact[-1][name], atol=1e-3, rtol=1e-3)
        captured.load_state(captured.state())
    assert (weights(plain) - before).norm() > 0
    assert (weights(captured) - weights(plain)).norm() < 0.02 * (weights(plain) - before).norm()
