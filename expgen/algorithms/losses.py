"""The terms three or more algorithms share, each under its formula; every mean is over all elements given."""

import torch
from torch import Tensor


def log_prob_of(logits: Tensor, action: Tensor) -> Tensor:
    """log π(a|o) from `logits` `[…, A]` and `action` `[…]`."""
    return torch.log_softmax(logits, -1).gather(-1, action.unsqueeze(-1)).squeeze(-1)


def entropy(logits: Tensor) -> Tensor:
    """mean H[π] = −mean Σ_a π(a) log π(a)."""
    log_prob = torch.log_softmax(logits, -1)
    return -(log_prob.exp() * log_prob).sum(-1).mean()


def clipped_surrogate(log_prob: Tensor, old_log_prob: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """L_π = −mean min(ρ Â, clip(ρ, 1−c, 1+c) Â), ρ = π/π_old."""
    ratio = (log_prob - old_log_prob).exp()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()


def clipped_value_loss(value: Tensor, old_value: Tensor, target: Tensor, clip: float) -> Tensor:
    """L_V = ½ mean max((V − R)², (V_old + clip(V − V_old, ±c) − R)²)."""
    clipped = old_value + (value - old_value).clamp(-clip, clip)
    return 0.5 * torch.maximum((value - target).square(), (clipped - target).square()).mean()


def approximate_kl(log_prob: Tensor, old_log_prob: Tensor) -> Tensor:
    """mean (ρ − 1 − log ρ): an unbiased, non-negative estimate of KL(π_old ‖ π) from samples of π_old."""
    log_ratio = log_prob - old_log_prob
    return (log_ratio.exp() - 1 - log_ratio).mean()
