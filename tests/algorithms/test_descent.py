"""Descent takes Adam steps on clipped gradients and changes only its own parameters."""

import pytest
import torch
from torch import nn

from expgen.algorithms.policy_gradient import Descent


def pair() -> tuple[nn.Parameter, nn.Parameter]:
    return nn.Parameter(torch.tensor([3.0])), nn.Parameter(torch.tensor([4.0]))


@pytest.mark.parametrize(("limit", "scale"), [(None, 1.0), (0.5, 0.1), (50.0, 1.0)])
def test_adam_step_with_clipped_gradient_by_hand(limit: float | None, scale: float):
    """L = 3x + 4y: a gradient of norm 5. Adam's first step is lr · g / (|g| + ε), nearly independent of |g|."""
    x, y = pair()
    norm = Descent([x, y], learning_rate=0.1, epsilon=1.0, max_grad_norm=limit).step(3 * x.sum() + 4 * y.sum())
    assert norm.item() == pytest.approx(5)
    assert x.item() == pytest.approx(3 - 0.1 * 3 * scale / (3 * scale + 1), abs=1e-5)
    assert y.item() == pytest.approx(4 - 0.1 * 4 * scale / (4 * scale + 1), abs=1e-5)


def test_descent_changes_only_its_own_parameters():
    x, y = pair()
    unused = nn.Parameter(torch.ones(2))
    Descent([x, unused], 0.1, 1e-8).step((x * y).sum())
    assert x.item() != 3 and y.item() == 4 and y.grad is None and unused.tolist() == [1, 1]


def test_descent_accepts_views_into_a_larger_tensor():
    """`fast.dense_network` makes weights views of one tensor; the gaps between them must not change."""
    storage, weight = torch.zeros(3, 4), nn.Parameter(torch.zeros(2, 3))
    weight.data = storage[:2, :3]
    Descent([weight], 0.1, 1e-8).step(weight.sum())
    expected = torch.zeros(3, 4)
    expected[:2, :3] = -0.1
    torch.testing.assert_close(storage, expected)
