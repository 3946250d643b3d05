"""DensePPO compared with PPO: gradients, complete updates, checkpoints."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import Tensor

from expgen.algorithms.ppo import PPO, PPOConfig, ppo_loss
from expgen.algorithms.protocol import Metrics
from expgen.envs.vec_env import EnvSpec
from expgen.fast.dense_network import DenseNetwork
from expgen.fast.dense_ppo import PARTS, DensePPO, Transitions, ppo_gradient
from expgen.networks.actor_critic import NetworkConfig, PolicyOutput, make_policy
from expgen.rollout.rollout import Rollout
from tests.batches import GivenBatch

A, B, T, N = 4, 400, 5, 6
SPEC = EnvSpec("toy", (3,), "float32", A)
CONFIG = PPOConfig(epochs=2, minibatches=4, minibatch_order="shuffled")


def transitions(spread: float) -> tuple[Tensor, Transitions]:
    """Return outputs and transitions of an older policy, which differ more for a larger `spread`."""
    generator = torch.Generator().manual_seed(0)

    def noise(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    output = noise(A + 1, B)
    action = torch.randint(A, (B,), generator=generator)
    log_prob = output[:-1].log_softmax(0).gather(0, action.unsqueeze(0))[0] + spread * noise(B)
    value, target = output[-1] + spread * noise(B), output[-1] + noise(B)
    arrays = (tensor.numpy() for tensor in (action, log_prob, value, noise(B), target))
    return output, Transitions(torch.zeros(B, 3), *arrays)


def plain_gradient(output: Tensor, batch: Transitions, config: PPOConfig) -> tuple[Tensor, Metrics]:
    output = output.clone().requires_grad_()
    policy_output = PolicyOutput(output[:-1].t().unsqueeze(0), output[-1:], torch.zeros(B, 0))
    unused = torch.zeros(1, B)
    tensors = (torch.from_numpy(array).unsqueeze(0) for array in batch[1:])
    loss, parts = ppo_loss(policy_output, GivenBatch(unused, unused, torch.zeros(B, 0), *tensors), config)
    return torch.autograd.grad(loss, output)[0], {"loss": loss.detach(), **parts}


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.5])
@pytest.mark.parametrize("changes", [{}, {"entropy_coef": 0.7, "value_coef": 2.0, "clip": 0.1}])
def test_ppo_gradient_matches_autograd(spread: float, changes: dict[str, float]):
    config = dataclasses.replace(CONFIG, **changes)
    output, batch = transitions(spread)
    expected, parts = plain_gradient(output, batch, config)
    got, terms = ppo_gradient(output.numpy(), batch, config)
    assert got.dtype == np.float32
    torch.testing.assert_close(torch.from_numpy(got), expected, rtol=1e-4, atol=1e-7)
    assert dict(zip(PARTS, terms, strict=True)) == pytest.approx(
        {name: part.item() for name, part in parts.items()}, rel=1e-4, abs=1e-6
    )


def test_gradient_test_data_covers_all_clipping_cases():
    """Ratios above, below and inside the clip range for both signs of the advantage; values clipped and not."""
    output, batch = transitions(0.5)
    chosen = output[:-1].log_softmax(0).numpy()[batch.action, np.arange(B)]
    ratio = np.exp(chosen - batch.log_prob)
    for where in (ratio > 1 + CONFIG.clip, ratio < 1 - CONFIG.clip, abs(ratio - 1) < CONFIG.clip):
        assert (where & (batch.advantage > 0)).any() and (where & (batch.advantage < 0)).any()
    d_value = ppo_gradient(output.numpy(), batch, CONFIG)[0][-1]
    is_far = abs(output[-1].numpy() - batch.value) > CONFIG.clip
    assert (d_value[is_far] == 0).any() and (d_value[is_far] != 0).any() and (d_value[~is_far] != 0).all()


def test_ppo_gradient_does_not_change_its_inputs():
    output, batch = transitions(0.5)
    given = (output.numpy(), *batch[1:])
    before = [array.copy() for array in given]
    ppo_gradient(output.numpy(), batch, CONFIG)
    assert all(np.array_equal(now, then) for now, then in zip(given, before))


def make(config: PPOConfig = CONFIG, seed: int = 0) -> PPO:
    policy = make_policy(SPEC, NetworkConfig(features=8), torch.Generator().manual_seed(seed), torch.device("cpu"))
    return PPO(policy, config)


def dense(plain: PPO, rollout: Rollout) -> DensePPO:
    rows = torch.cat([rollout.obs, torch.ones(T + 1, N, 1)], -1)
    return DensePPO(plain, DenseNetwork(plain.policy), rows)


def played_rollout(target_scale: float = 1.0) -> Rollout:
    generator = torch.Generator().manual_seed(1)
    rollout = Rollout(SPEC, T, N, 0, torch.device("cpu"))
    for tensor, scale in ((rollout.obs, 1), (rollout.advantage, 1), (rollout.value, 1), (rollout.value_target, 1)):
        tensor.copy_(scale * torch.randn(tensor.shape, generator=generator))
    rollout.value_target.mul_(target_scale)
    rollout.action.copy_(torch.randint(A, rollout.action.shape, generator=generator))
    rollout.log_prob.copy_(-1.4 + 0.2 * torch.randn(rollout.log_prob.shape, generator=generator))
    rollout.log_prob[T] = rollout.value[T] = float("nan")  # an update must not read slot T
    return rollout


def updated(algorithm: PPO | DensePPO, rollout: Rollout, seed: int = 7) -> list[dict[str, float]]:
    rows = list(algorithm.update(rollout, torch.Generator().manual_seed(seed)))
    assert all(value.dim() == 0 and not value.requires_grad for row in rows for value in row.values())
    return [{name: value.item() for name, value in row.items()} for row in rows]


def assert_same_state(one: dict[str, Tensor], other: dict[str, Tensor], rtol: float = 1e-3, atol: float = 2e-6) -> None:
    assert list(one) == list(other)
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=rtol, atol=atol, msg=name)


@pytest.mark.parametrize("order", ["shuffled", "columns"])
@pytest.mark.parametrize(("target_scale", "max_norm"), [(5.0, 0.1), (0.1, 50.0)])
def test_dense_update_matches_plain_update(order: str, target_scale: float, max_norm: float):
    """30 transitions in 4 minibatches of unequal size, with and without clipping of the gradient's norm."""
    config = dataclasses.replace(CONFIG, minibatch_order=order, max_grad_norm=max_norm)
    rollout = played_rollout(target_scale)
    plain = make(config)
    fast = dense(make(config), rollout)
    expected, got = updated(plain, rollout), updated(fast, rollout)
    assert len(got) == len(expected) == 8
    for row, plain_row in zip(got, expected):
        assert row == pytest.approx(plain_row, rel=1e-3, abs=1e-5)
        assert (row["grad_norm"] > max_norm) == (max_norm == 0.1)
    assert_same_state(fast.state(), plain.state())


def test_checkpoints_load_between_dense_and_plain_ppo():
    rollout = played_rollout()
    whole = make()
    updated(whole, rollout, 1)
    saved = {name: tensor.clone() for name, tensor in whole.state().items()}
    updated(whole, rollout, 2)

    fast = dense(make(seed=5), rollout)
    fast.load_state(saved)
    assert_same_state(fast.state(), saved, 0, 0)
    updated(fast, rollout, 2)
    assert_same_state(fast.state(), whole.state())

    fast = dense(make(), rollout)
    updated(fast, rollout, 1)
    back = make(seed=5)
    back.load_state(fast.state())
    assert_same_state(back.state(), fast.state(), 0, 0)
    updated(back, rollout, 2)
    assert_same_state(back.state(), whole.state())


def test_loading_a_state_without_moments_resets_adam():
    """PPO's state before its first update holds none."""
    rollout = played_rollout()
    used, fresh = dense(make(), rollout), dense(make(), rollout)
    updated(used, rollout)
    used.load_state(make().state())
    assert_same_state(used.state(), fresh.state(), 0, 0)
