"""DAAC: its loss by hand, its advantage head, and which network each phase trains."""

from math import log
from typing import Any

import pytest
import torch
from torch import nn

from expgen.algorithms.daac import DAAC, AdvantageHead, DAACConfig, daac_loss

EVEN = torch.zeros(1, 1, 2, dtype=torch.float64)  # logits of π = (½, ½)


def generator(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("config", "total"),
    [
        (DAACConfig(), -1.2 - 0.01 * log(2) + 0.25 * 1.5**2),  # ρ = 1.25 is clipped to 1.2; A_φ − Â = 2.5 − 1
        (DAACConfig(clip=0.1, entropy_coef=0.3, advantage_coef=2.0), -1.1 - 0.3 * log(2) + 2 * 1.5**2),
    ],
)
def test_daac_loss_by_hand(config: DAACConfig, total: float, single: Any):
    advantage = torch.full((1, 1), 2.5, dtype=torch.float64, requires_grad=True)
    loss, parts = daac_loss(EVEN, advantage, single(advantage=1.0), config)
    assert loss.item() == pytest.approx(total)
    assert parts["advantage_loss"].item() == pytest.approx(2.25) and parts["entropy"].item() == pytest.approx(log(2))
    loss.backward()
    assert advantage.grad.item() == pytest.approx(2 * config.advantage_coef * 1.5)


def test_daac_defaults_are_the_authors():
    c = DAACConfig()
    assert (c.epochs, c.value_epochs, c.value_every, c.minibatches) == (1, 9, 1, 8)
    assert (c.advantage_coef, c.learning_rate, c.adam_epsilon, c.max_grad_norm) == (0.25, 5e-4, 1e-5, 0.5)
    assert (c.clip, c.entropy_coef, c.gamma, c.gae_lambda, c.minibatch_order) == (0.2, 0.01, 0.999, 0.95, "shuffled")


def test_advantage_head_equals_a_linear_layer_on_features_and_action(toy: Any):
    policy = toy.networks().policy
    head = AdvantageHead(policy, generator())
    policy.value_head.bias.data.fill_(0.3)
    features, action = torch.randn(2, 5, 8, generator=generator()), torch.randint(4, (2, 5), generator=generator())
    layer = nn.Linear(8 + 4, 1)
    layer.weight.data = torch.cat([policy.value_head.weight[0], head.of_action])[None]
    layer.bias.data = policy.value_head.bias
    expected = layer(torch.cat([features, nn.functional.one_hot(action, 4)], -1)).squeeze(-1)
    torch.testing.assert_close(head(policy.heads(features, torch.zeros(5, 0)).value, action), expected)
    assert layer.weight.norm().item() == pytest.approx(1)  # orthogonal with gain 1: a row of length 1


def test_compute_values_equals_frame_by_frame_values(toy: Any):
    daac, rollout = DAAC(toy.networks(), DAACConfig()), toy.rollout()
    daac.compute_values(rollout)
    for t in range(toy.num_steps + 1):
        for env in range(toy.num_envs):
            alone = daac.value_network(rollout.obs[t : t + 1, env : env + 1])[0, 0]
            torch.testing.assert_close(rollout.value[t, env], alone)
    assert not rollout.value.requires_grad


def test_each_phase_changes_only_its_own_network(toy: Any, weights: Any):
    daac, rollout = DAAC(toy.networks(), DAACConfig(epochs=2, value_epochs=3, minibatches=4)), toy.rollout()
    policy, value = weights(daac.policy), weights(daac.value_network)
    phases = []
    for metrics in daac.update(rollout, generator()):
        is_policy = "policy_loss" in metrics
        phases.append(is_policy)
        moved = not torch.equal(policy, weights(daac.policy)), not torch.equal(value, weights(daac.value_network))
        assert moved == (is_policy, not is_policy)
        policy, value = weights(daac.policy), weights(daac.value_network)
    assert phases == [True] * 8 + [False] * 12  # policy first


def test_update_trains_the_advantage_head(toy: Any):
    daac = DAAC(toy.networks(), DAACConfig())
    before = daac.actor.advantage_head.of_action.detach().clone()
    next(daac.update(toy.rollout(), generator()))
    assert not torch.equal(before, daac.actor.advantage_head.of_action)


def test_value_step_is_adam_on_the_clipped_value_loss(toy: Any):
    daac, rollout = DAAC(toy.networks(), DAACConfig(minibatches=1, value_epochs=1)), toy.rollout()
    plain = toy.networks().value
    target, old = rollout.value_target, rollout.value[: toy.num_steps]
    value = plain(rollout.obs[: toy.num_steps])
    near = old + (value - old).clip(-0.2, 0.2)
    loss = 0.5 * torch.max((value - target) ** 2, (near - target) ** 2).mean()
    gradient = torch.autograd.grad(loss, list(plain.parameters()))
    norm = sum(g.square().sum() for g in gradient) ** 0.5
    metrics = list(daac.update(rollout, generator()))[-1]
    torch.testing.assert_close(metrics["value_loss"], loss.detach())
    torch.testing.assert_close(metrics["value_grad_norm"], norm)
    for got, start, g in zip(daac.value_network.parameters(), plain.parameters(), gradient):
        step = g * min(1.0, 0.5 / (float(norm) + 1e-6))  # Adam's first step is g / |g|
        torch.testing.assert_close(start - got, 5e-4 * step / (step.abs() + 1e-5), rtol=2e-3, atol=1e-6)


def test_daac_resumes_exactly(toy: Any, check_exact_resume: Any):
    config = DAACConfig(value_every=2, minibatches=2, value_epochs=2)
    check_exact_resume(lambda seed: DAAC(toy.networks(seed), config), [toy.rollout(seed) for seed in range(3)])
