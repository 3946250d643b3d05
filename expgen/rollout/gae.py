"""Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438, Eq. 16), computed in log₂T passes.

    δ_t = r_t + γ V_{t+1} m_{t+1} + κ V_t e_{t+1} − V_t
    A_t = δ_t + γ λ m_{t+1} A_{t+1},  A_T = 0

    m_t = 0 where o_t opens an episode, else 1
    e_t = 1 where the episode before o_t ended by success or time-out, not by death, else 0

The ExpGen paper has κ = 0: the return after any end, time-outs included, is 0. With κ > 0 an episode that ends by
success or time-out bootstraps from κ V_t, so that an explorer loses little by solving a level.
"""

import torch
from torch import Tensor


def advantages(
    reward: Tensor,
    value: Tensor,
    first: Tensor,
    gamma: float,
    gae_lambda: float,
    *,
    survived: Tensor | None = None,
    end_value: float = 0.0,
) -> Tensor:
    """Return A `[T, N]` from `reward` `[T, N]`, and `value` and `first` `[T+1, N]`; value targets are A + value[:T].

    `gamma`, `gae_lambda` and `end_value` are γ, λ and κ. `survived` `[T+1, N]` bool is e: it marks observations before
    which an episode ended by success or time-out. Without it κ has no effect.
    """
    continues = (~first[1:]).to(reward.dtype)  # m_{t+1}, [T, N]
    delta = reward + gamma * value[1:] * continues - value[:-1]
    if end_value and survived is not None:
        delta = delta + end_value * value[:-1] * survived[1:]
    return discounted_suffix_sum(delta, gamma * gae_lambda * continues)


def discounted_suffix_sum(term: Tensor, factor: Tensor) -> Tensor:
    """Return x `[T, N]`, x_t = term_t + factor_t · x_{t+1}, by a parallel scan: each pass doubles the terms in x_t."""
    total, weight = term, factor  # after k passes: sum of 2^k terms from t on, and the product of their factors
    step = 1
    while step < term.shape[0]:
        pad = torch.zeros_like(total[:step])
        total = total + weight * torch.cat([total[step:], pad])
        weight = weight * torch.cat([weight[step:], pad])
        step *= 2
    return total


def normalized(advantage: Tensor, epsilon: float) -> Tensor:
    """Return `advantage` shifted to mean 0 and divided by its (unbiased) standard deviation plus `epsilon`."""
    return (advantage - advantage.mean()) / (advantage.std() + epsilon)
