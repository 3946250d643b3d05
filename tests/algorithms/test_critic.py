"""DAAC's critic: when it learns, what it learns from, and the values it computes."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from expgen.algorithms.daac import DAAC, Critic, DAACConfig
from expgen.algorithms.policy_gradient import clipped_value_loss
from expgen.rollout.rollout import Rollout


def config(**changes: Any) -> DAACConfig:
    plain: dict[str, Any] = {
        "value_every": 1, "value_epochs": 2, "minibatches": 3, "learning_rate": 1e-2,
    }  # fmt: skip
    return DAACConfig(**{**plain, **changes})


def learn(critic: Critic, rollout: Rollout, seed: int = 0) -> list[dict[str, Tensor]]:
    return list(critic.update(rollout, torch.Generator().manual_seed(seed)))


def test_critic_learns_from_every_nth_rollout(toy: Any) -> None:
    critic = Critic(toy.networks().value, config(value_every=3))
    assert [len(learn(critic, toy.rollout())) for _ in range(7)] == [6, 0, 0, 6, 0, 0, 6]


def test_critic_reports_the_loss_before_its_step(toy: Any) -> None:
    network, rollout = toy.networks().value, toy.rollout()
    with torch.no_grad():
        value = network(rollout.obs[:-1])
        expected = clipped_value_loss(value, rollout.value[:-1], rollout.value_target, 0.1)
    (metrics,) = learn(Critic(network, config(value_epochs=1, minibatches=1, clip=0.1)), rollout)
    assert metrics.keys() == {"value_loss", "value_grad_norm"}
    torch.testing.assert_close(metrics["value_loss"], expected)


def test_critic_fits_its_targets_without_changing_the_policy(toy: Any, weights: Callable[[nn.Module], Tensor]) -> None:
    networks, rollout = toy.networks(), toy.rollout()
    before = weights(networks.policy)
    critic = Critic(networks.value, config(value_epochs=200, clip=100.0, max_grad_norm=10.0))
    metrics = learn(critic, rollout)
    assert metrics[-1]["value_loss"] < 0.2 * metrics[0]["value_loss"]
    assert torch.equal(before, weights(networks.policy))


def test_critic_ignores_advantages(toy: Any, weights: Callable[[nn.Module], Tensor]) -> None:
    learnt = []
    for scale in (1.0, float("nan")):
        network, rollout = toy.networks().value, toy.rollout()
        rollout.advantage.mul_(scale)
        learn(Critic(network, config()), rollout)
        learnt.append(weights(network))
    assert torch.equal(*learnt)


def test_loaded_critic_continues_identically(
    toy: Any, equal: Callable[[dict[str, Tensor], dict[str, Tensor]], bool]
) -> None:
    saved, loaded = (DAAC(toy.networks(seed), config(value_every=2)) for seed in (0, 1))
    learn(saved.critic, toy.rollout())
    loaded.load_state({name: tensor.clone() for name, tensor in saved.state().items()})
    for seed in (4, 5):  # not due, then due
        assert len(learn(saved.critic, toy.rollout(seed))) == len(learn(loaded.critic, toy.rollout(seed)))
    assert equal(saved.state(), loaded.state())


@pytest.mark.parametrize("num_parts", [1, 8, 36, 50])
def test_values_do_not_depend_on_the_number_of_batches(num_parts: int, toy: Any) -> None:
    """36 frames do not split evenly into 8 batches, and of 50 batches some are empty."""
    networks, rollout = toy.networks(), toy.rollout()
    with torch.no_grad():
        expected = networks.value(rollout.obs)
    DAAC(networks, config(minibatches=num_parts)).compute_values(rollout)
    torch.testing.assert_close(rollout.value, expected)
    assert not rollout.value.requires_grad
