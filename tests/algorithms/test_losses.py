"""Each loss term by hand, and its gradient with and without clipping."""

from math import log

import pytest
import torch
from torch import Tensor

from expgen.algorithms.policy_gradient import (
    approximate_kl,
    clipped_surrogate,
    clipped_value_loss,
    entropy,
    log_prob_of,
)


def tensor(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.5, 2.0, -2.4, 0.0),  # min(3, 1.2 · 2): clipped, no gradient
        (1.5, -2.0, 3.0, 3.0),  # min(−3, −2.4): not clipped, pulled back
        (0.5, 2.0, -1.0, -1.0),  # min(1, 1.6): not clipped, pulled back
        (0.5, -2.0, 1.6, 0.0),  # min(−1, −1.6): clipped, no gradient
        (1.1, 2.0, -2.2, -2.2),  # inside the range
        (0.9, -2.0, 1.8, 1.8),
    ],
)
def test_clipped_surrogate_by_hand(ratio: float, advantage: float, loss: float, slope: float):
    """∂L/∂log π = −ρ Â where the ratio is not clipped, else 0."""
    old = tensor(-1.3)
    log_prob = (old + tensor(ratio).log()).requires_grad_()
    value = clipped_surrogate(log_prob, old, tensor(advantage), 0.2)
    value.backward()
    assert value.item() == pytest.approx(loss) and log_prob.grad.item() == pytest.approx(slope)


def test_clipped_surrogate_is_a_mean():
    log_ratio = tensor(1.5, 0.5, 0.5).log()
    loss = clipped_surrogate(log_ratio, torch.zeros(3), tensor(2, 2, -2), 0.2)
    assert loss.item() == pytest.approx((-2.4 - 1.0 + 1.6) / 3)


@pytest.mark.parametrize(
    ("value", "target", "loss", "slope"),
    [
        (2.0, 0.0, 2.0, 2.0),  # ½ max(2², 1.2²): the larger error is the unclipped one
        (2.0, 3.0, 1.62, 0.0),  # ½ max(1, 1.8²): the clipped error is larger and has no gradient
        (0.0, -1.0, 1.62, 0.0),  # ½ max(1, 1.8²) on the other side
        (0.9, 2.0, 0.605, -1.1),  # inside the range both are 1.1²
    ],
)
def test_clipped_value_loss_around_an_old_value_of_one(value: float, target: float, loss: float, slope: float):
    leaf = tensor(value).requires_grad_()
    result = clipped_value_loss(leaf, tensor(1.0), tensor(target), 0.2)
    result.backward()
    assert result.item() == pytest.approx(loss) and leaf.grad.item() == pytest.approx(slope)


def test_clipped_value_loss_takes_the_maximum_per_element():
    """Per element 4 and 3.24; the larger of the two means would be that of (4 + 1) and (1.44 + 3.24)."""
    loss = clipped_value_loss(tensor(2, 2), tensor(1, 1), tensor(0, 3), 0.2)
    assert loss.item() == pytest.approx(0.5 * (4 + 3.24) / 2)


def test_entropy_loss_term_by_hand():
    assert entropy(torch.zeros(2, 3, 4, dtype=torch.float64)).item() == pytest.approx(log(4))
    half = 0.75 * log(4 / 3) + 0.25 * log(4)  # π = (¾, ¼)
    logits = torch.stack([tensor(log(3), 0), tensor(7, 7)])
    assert entropy(logits).item() == pytest.approx((half + log(2)) / 2)


def test_log_prob_of_actions_by_hand():
    logits = torch.stack([tensor(log(3), 0), tensor(5, 5 + log(9))])
    expected = tensor(0.75, 0.9).log()
    torch.testing.assert_close(log_prob_of(logits, torch.tensor([0, 1])), expected)
    torch.testing.assert_close(log_prob_of(logits[None], torch.tensor([[0, 1]])), expected[None])


def test_approximate_kl_by_hand():
    log_ratio = tensor(2, 0.5).log()  # (2 − 1 − log 2 + ½ − 1 + log 2) / 2
    assert approximate_kl(log_ratio, torch.zeros(2)).item() == pytest.approx(0.25)
    # with samples in the proportions of π_old = (¾, ¼) it is KL(π_old ‖ π) itself, here π = (½, ½)
    old = tensor(0.75, 0.75, 0.75, 0.25).log()
    kl = 0.75 * log(1.5) + 0.25 * log(0.5)
    assert approximate_kl(torch.full_like(old, log(0.5)), old).item() == pytest.approx(kl)
