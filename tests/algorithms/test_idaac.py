"""IDAAC: the classifier's losses by hand, who may learn from which, and features that stop telling the order."""

from math import log
from typing import Any

import pytest
import torch

from expgen.algorithms.daac import DAAC, DAACConfig
from expgen.algorithms.idaac import IDAAC, IDAACConfig, OrderClassifier, classifier_loss, order_loss
from expgen.algorithms.idaac_order import Pairs
from expgen.rollout.minibatch import Minibatch, minibatches
from expgen.rollout.rollout import Rollout


def generator(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def verdict(*odds: float) -> torch.Tensor:
    """Outputs whose softmax's first component is odds / (1 + odds)."""
    return torch.stack([torch.tensor([log(x), 0.0], dtype=torch.float64) for x in odds])


def test_classifier_loss_by_hand():
    """p = ¾ where j is earlier and p = ⅕ where it is not: −(log ¾ + log ⅘) / 2."""
    loss = classifier_loss(verdict(3, 0.25), torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert loss.item() == pytest.approx(-(log(0.75) + log(0.8)) / 2)


def test_order_loss_by_hand():
    """BCE(¾, ½) = −(log ¾ + log ¼) / 2; least, with no slope, where p = ½."""
    assert order_loss(verdict(3)).item() == pytest.approx(-(log(0.75) + log(0.25)) / 2)
    undecided = verdict(1).requires_grad_()
    order_loss(undecided).backward()
    assert order_loss(undecided).item() == pytest.approx(log(2)) and undecided.grad.abs().max() < 1e-12
    decided = verdict(3).requires_grad_()
    order_loss(decided).backward()
    assert decided.grad[0].tolist() == pytest.approx([0.25, -0.25])  # p − ½ and its opposite


def test_the_classifier_is_linear_unless_given_a_width():
    linear, wide = (OrderClassifier(8, hidden, generator()) for hidden in (0, 5))
    assert [layer.weight.shape for layer in linear.layers] == [(2, 16)]
    assert [layer.weight.shape for layer in wide.layers] == [(5, 16), (2, 5)]
    gram = wide.layers[0].weight @ wide.layers[0].weight.T  # rows at right angles, of length √2 before a ReLU
    torch.testing.assert_close(gram, 2 * torch.eye(5))
    torch.testing.assert_close(wide.layers[1].weight @ wide.layers[1].weight.T, torch.eye(2))
    one, other = torch.randn(3, 8, generator=generator()), torch.randn(3, 8, generator=generator(1))
    by_hand = torch.cat([one, other], 1) @ wide.layers[0].weight.T
    torch.testing.assert_close(wide(one, other), by_hand.clamp(min=0) @ wide.layers[1].weight.T)


def batch_of(toy: Any) -> tuple[Minibatch, Pairs]:
    """All of a rollout, each frame paired with one at random that comes earlier."""
    rollout = toy.rollout()
    batch = next(minibatches(rollout, rollout.advantage, 1, "shuffled", generator()))
    size = toy.num_steps * toy.num_envs
    partner = torch.randint(size + toy.num_envs, (size,), generator=generator(1))
    return batch, Pairs(partner, torch.ones(size), torch.zeros(toy.num_envs))


def test_without_the_order_loss_the_policy_step_is_daacs(toy: Any, weights: Any):
    batch, pairs = batch_of(toy)
    daac, idaac = DAAC(toy.networks(), DAACConfig()), IDAAC(toy.networks(), IDAACConfig(order_coef=0.0))
    one, other = daac.step(batch), idaac.step(batch, pairs)
    torch.testing.assert_close(one["loss"], other["loss"])
    torch.testing.assert_close(weights(daac.policy), weights(idaac.policy), rtol=1e-4, atol=1e-6)


def test_the_order_loss_moves_the_features_and_not_the_classifier(toy: Any, weights: Any):
    batch, pairs = batch_of(toy)
    one, other = (IDAAC(toy.networks(), IDAACConfig(order_coef=c)) for c in (0.0, 100.0))
    for idaac in (one, other):
        idaac.step(batch, pairs)
    assert torch.equal(weights(one.classifier), weights(other.classifier))  # learns from its own loss alone
    assert not torch.allclose(weights(one.policy.encoder), weights(other.policy.encoder), atol=1e-4)


def test_the_classifier_step_moves_the_classifier_alone(toy: Any):
    batch, pairs = batch_of(toy)
    idaac = IDAAC(toy.networks(), IDAACConfig())
    features, _ = idaac.policy.features(batch.obs, batch.first, batch.state)
    idaac.classifier_descent.step(classifier_loss(idaac.classifier(features[0], features[0]), pairs.is_earlier))
    assert all(parameter.grad is None for parameter in idaac.policy.parameters())
    assert all(parameter.grad is not None for parameter in idaac.classifier.parameters())


def test_the_gradient_of_the_order_loss_reaches_both_frames(toy: Any):
    features = [torch.randn(4, 8, generator=generator(seed)).requires_grad_() for seed in (0, 1)]
    order_loss(IDAAC(toy.networks(), IDAACConfig()).classifier(*features)).backward()
    assert all(frame.grad.abs().max() > 0 for frame in features)


def aged_pairs(toy: Any, seed: int, obs_tells_age: bool) -> tuple[Minibatch, Pairs]:
    """256 pairs of frames of random ages, one step apart; an observation says the age, or nothing at all."""
    random, size = generator(seed), 256
    rollout = Rollout(toy.spec, 1, size, 0, torch.device("cpu"))
    age = torch.rand(2, size, generator=random)
    rollout.obs.normal_(generator=random)
    if obs_tells_age:
        rollout.obs[..., 0] = 4 * age - 2
    rollout.log_prob.fill_(log(0.25))
    row = torch.arange(size)
    pairs = Pairs(size + row, (age[1] < age[0]).float(), torch.zeros(size))
    return Minibatch(rollout, torch.zeros(1, size), row, "shuffled"), pairs


@pytest.mark.parametrize(
    ("obs_tells_age", "order_coef", "can_tell"),
    [
        (True, 0.0, True),
        (False, 0.0, False),  # features that carry no order
        (True, 1.0, False),  # nor do they once the policy network has learnt to hide it
    ],
)
def test_the_classifier_can_tell_only_while_features_carry_the_order(
    toy: Any, obs_tells_age: bool, order_coef: float, can_tell: bool
):
    idaac = IDAAC(toy.networks(), IDAACConfig(order_coef=order_coef, learning_rate=1e-2))
    metrics = [idaac.step(*aged_pairs(toy, seed, obs_tells_age)) for seed in range(150)][-40:]
    accuracy, loss = (
        sum(row[name].item() for row in metrics) / len(metrics) for name in ("order_accuracy", "classifier_loss")
    )
    if can_tell:
        assert accuracy > 0.7 and loss < 0.6
    else:
        assert 0.45 < accuracy < 0.55 and loss == pytest.approx(log(2), abs=0.02)


def test_ages_go_on_from_rollout_to_rollout_and_through_a_checkpoint(toy: Any, goes_on_exactly: Any):
    config, rollouts = IDAACConfig(minibatches=2, value_epochs=1, order_hidden=3), map(toy.rollout, range(3))
    saved = goes_on_exactly(lambda seed: IDAAC(toy.networks(seed), config), list(rollouts))
    assert saved.elapsed.shape == (toy.num_envs,) and saved.elapsed.any()
