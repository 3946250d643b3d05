"""IDAAC: the classifier's losses by hand, what each step trains, and features that lose the order."""

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


def logits_of(*odds: float) -> torch.Tensor:
    """Return logits whose softmax has the first component odds / (1 + odds)."""
    return torch.stack([torch.tensor([log(x), 0.0], dtype=torch.float64) for x in odds])


def test_classifier_loss_by_hand():
    """p = ¾ where j is earlier and p = ⅕ where it is not: −(log ¾ + log ⅘) / 2."""
    loss = classifier_loss(logits_of(3, 0.25), torch.tensor([1.0, 0.0], dtype=torch.float64))
    assert loss.item() == pytest.approx(-(log(0.75) + log(0.8)) / 2)


def test_order_loss_by_hand():
    """BCE(¾, ½) = −(log ¾ + log ¼) / 2; the minimum is at p = ½."""
    assert order_loss(logits_of(3)).item() == pytest.approx(-(log(0.75) + log(0.25)) / 2)
    undecided = logits_of(1).requires_grad_()
    order_loss(undecided).backward()
    assert order_loss(undecided).item() == pytest.approx(log(2)) and undecided.grad.abs().max() < 1e-12
    decided = logits_of(3).requires_grad_()
    order_loss(decided).backward()
    assert decided.grad[0].tolist() == pytest.approx([0.25, -0.25])  # p − ½ and its opposite


def test_order_classifier_layers_and_initialisation():
    linear, wide = (OrderClassifier(8, hidden, generator()) for hidden in (0, 5))
    assert [layer.weight.shape for layer in linear.layers] == [(2, 16)]
    assert [layer.weight.shape for layer in wide.layers] == [(5, 16), (2, 5)]
    gram = wide.layers[0].weight @ wide.layers[0].weight.T  # orthogonal rows of norm √2 before a ReLU
    torch.testing.assert_close(gram, 2 * torch.eye(5))
    torch.testing.assert_close(wide.layers[1].weight @ wide.layers[1].weight.T, torch.eye(2))
    one, other = torch.randn(3, 8, generator=generator()), torch.randn(3, 8, generator=generator(1))
    by_hand = torch.cat([one, other], 1) @ wide.layers[0].weight.T
    torch.testing.assert_close(wide(one, other), by_hand.clamp(min=0) @ wide.layers[1].weight.T)


def batch_of(toy: Any) -> tuple[Minibatch, Pairs]:
    """Return a whole rollout as one minibatch, with random partners that are labelled as earlier."""
    rollout = toy.rollout()
    batch = next(minibatches(rollout, rollout.advantage, 1, "shuffled", generator()))
    size = toy.num_steps * toy.num_envs
    partner = torch.randint(size + toy.num_envs, (size,), generator=generator(1))
    return batch, Pairs(partner, torch.ones(size), torch.zeros(toy.num_envs))


def test_idaac_without_order_loss_takes_daacs_policy_step(toy: Any, weights: Any):
    batch, pairs = batch_of(toy)
    daac, idaac = DAAC(toy.networks(), DAACConfig()), IDAAC(toy.networks(), IDAACConfig(order_coef=0.0))
    one, other = daac.step(batch), idaac.step(batch, pairs)
    torch.testing.assert_close(one["loss"], other["loss"])
    torch.testing.assert_close(weights(daac.policy), weights(idaac.policy), rtol=1e-4, atol=1e-6)


def test_idaac_update_without_order_loss_is_daacs(toy: Any, weights: Any):
    """With one minibatch per epoch, its order affects rounding only."""
    same, rollout = {"minibatches": 1, "epochs": 2, "value_epochs": 2}, toy.rollout()
    rollout.advantage.mul_(5).add_(3)  # both normalise it
    daac, idaac = DAAC(toy.networks(), DAACConfig(**same)), IDAAC(toy.networks(), IDAACConfig(**same, order_coef=0.0))  # type: ignore[arg-type]
    one, other = (list(algorithm.update(rollout, generator())) for algorithm in (daac, idaac))
    for mine, daacs in zip(other, one, strict=True):
        for name, value in daacs.items():
            torch.testing.assert_close(mine[name], value, rtol=1e-3, atol=1e-5, msg=name)
    torch.testing.assert_close(weights(daac.policy), weights(idaac.policy), rtol=1e-3, atol=1e-5)


def test_order_loss_changes_features_but_not_the_classifier(toy: Any, weights: Any):
    batch, pairs = batch_of(toy)
    one, other = (IDAAC(toy.networks(), IDAACConfig(order_coef=c)) for c in (0.0, 100.0))
    for idaac in (one, other):
        idaac.step(batch, pairs)
    assert torch.equal(weights(one.classifier), weights(other.classifier))  # the order loss does not train it
    assert not torch.allclose(weights(one.policy.encoder), weights(other.policy.encoder), atol=1e-4)


def test_classifier_step_changes_only_the_classifier(toy: Any):
    batch, pairs = batch_of(toy)
    idaac = IDAAC(toy.networks(), IDAACConfig())
    features, _ = idaac.policy.features(batch.obs, batch.first, batch.state)
    idaac.classifier_descent.step(classifier_loss(idaac.classifier(features[0], features[0]), pairs.is_earlier))
    assert all(parameter.grad is None for parameter in idaac.policy.parameters())
    assert all(parameter.grad is not None for parameter in idaac.classifier.parameters())


def test_both_steps_are_on_frames_i_then_j_and_the_order_loss_trains_the_features_of_both(toy: Any):
    """With a learning rate of 0 the steps change nothing, so both gradients can be computed afterwards."""
    batch, pairs = batch_of(toy)
    idaac = IDAAC(toy.networks(), IDAACConfig(order_coef=3.0, learning_rate=0.0))
    metrics = idaac.step(batch, pairs)

    def norm_of(loss: torch.Tensor, parameters: Any) -> float:
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(parameters))]).norm().item()

    output = idaac.policy(batch.obs, batch.first, batch.state)
    frames = batch.rollout.obs.flatten(0, 1)
    features, partner = (idaac.policy.encode(obs) for obs in (batch.obs[0], frames[pairs.partner[batch.index]]))
    loss_d = classifier_loss(idaac.classifier(features, partner), pairs.is_earlier[batch.index])
    invariance = order_loss(idaac.classifier(features, partner))
    loss = idaac.actor.loss(output, batch, None)[0] + 3 * invariance
    assert metrics["classifier_loss"].item() == pytest.approx(loss_d.item(), rel=1e-5)
    assert metrics["order_loss"].item() == pytest.approx(invariance.item(), rel=1e-5)
    norm_d = norm_of(loss_d, idaac.classifier.parameters())
    assert metrics["classifier_grad_norm"].item() == pytest.approx(norm_d, rel=1e-4)
    assert metrics["grad_norm"].item() == pytest.approx(norm_of(loss, idaac.actor.descent.parameters), rel=1e-4)


def aged_pairs(toy: Any, seed: int, has_age: bool) -> tuple[Minibatch, Pairs]:
    """Return 256 pairs of frames with random ages; the observation contains the age, or is independent of it."""
    random, size = generator(seed), 256
    rollout = Rollout(toy.spec, 1, size, 0, torch.device("cpu"))
    age = torch.rand(2, size, generator=random)
    rollout.obs.normal_(generator=random)
    if has_age:
        rollout.obs[..., 0] = 4 * age - 2
    rollout.log_prob.fill_(log(0.25))
    row = torch.arange(size)
    pairs = Pairs(size + row, (age[1] < age[0]).float(), torch.zeros(size))
    return Minibatch(rollout, torch.zeros(1, size), row, "shuffled"), pairs


@pytest.mark.parametrize(
    ("has_age", "order_coef", "is_predictable"),
    [
        (True, 0.0, True),
        (False, 0.0, False),  # features without order
        (True, 1.0, False),  # the policy network removes the order from its features
    ],
)
def test_classifier_predicts_order_only_if_features_contain_it(
    toy: Any, has_age: bool, order_coef: float, is_predictable: bool
):
    idaac = IDAAC(toy.networks(), IDAACConfig(order_coef=order_coef, learning_rate=1e-2))
    metrics = [idaac.step(*aged_pairs(toy, seed, has_age)) for seed in range(150)][-40:]
    accuracy, loss = (
        sum(row[name].item() for row in metrics) / len(metrics) for name in ("order_accuracy", "classifier_loss")
    )
    if is_predictable:
        assert accuracy > 0.7 and loss < 0.6
    else:
        assert 0.45 < accuracy < 0.55 and loss == pytest.approx(log(2), abs=0.02)


def test_idaac_resumes_exactly_with_episode_ages(toy: Any, check_exact_resume: Any):
    config, rollouts = IDAACConfig(minibatches=2, value_epochs=1, order_hidden=3), map(toy.rollout, range(3))
    saved = check_exact_resume(lambda seed: IDAAC(toy.networks(seed), config), list(rollouts))
    assert saved.elapsed.shape == (toy.num_envs,) and saved.elapsed.any()
