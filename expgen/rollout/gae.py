"""Generalised advantage estimation, over a whole rollout in log₂T passes.

    δ_t = r_t + γ V_{t+1} m_{t+1} − V_t
    A_t = δ_t + γ λ m_{t+1} A_{t+1},  A_T = 0        (m_t = 0 where o_t opens an episode)

A time-out is an ordinary end: nothing is bootstrapped through it.
"""

import torch
from torch import Tensor


def advantages(reward: Tensor, value: Tensor, first: Tensor, gamma: float, gae_lambda: float) -> Tensor:
    """`reward` `[T, N]`, `value` and `first` `[T+1, N]` → A `[T, N]`; the value target is A + value[:T]."""
    goes_on = (~first[1:]).to(reward.dtype)  # [T, N]
    delta = reward + gamma * value[1:] * goes_on - value[:-1]
    return discounted_suffix_sum(delta, gamma * gae_lambda * goes_on)


def discounted_suffix_sum(term: Tensor, factor: Tensor) -> Tensor:
    """x_t = term_t + factor_t · x_{t+1}, by doubling the reach of each sum: log₂T passes over `[T, N]`."""
    total, reach = term, factor
    step = 1
    while step < term.shape[0]:
        pad = torch.zeros_like(total[:step])
        total = total + reach * torch.cat([total[step:], pad])
        reach = reach * torch.cat([reach[step:], pad])
        step *= 2
    return total


def normalized(advantage: Tensor, epsilon: float) -> Tensor:
    """Zero mean, unit (unbiased) standard deviation over the whole rollout."""
    return (advantage - advantage.mean()) / (advantage.std() + epsilon)
