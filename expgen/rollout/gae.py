"""Generalised advantage estimation, over a whole rollout in log₂T passes.

    δ_t = r_t + γ V_{t+1} m_{t+1} + κ V_t e_{t+1} − V_t
    A_t = δ_t + γ λ m_{t+1} A_{t+1},  A_T = 0

    m_t = 0 where o_t opens an episode, else 1
    e_t = 1 where the episode before o_t ended by success or time-out, not by death, else 0

κ = 0 is the paper: every end is worth nothing, a time-out too. With κ > 0 an episode that ended well counts as if it
went on from a state worth κ V_t: a policy paid for novelty then loses little by success.
"""

import torch
from torch import Tensor


def advantages(
    reward: Tensor,
    value: Tensor,
    first: Tensor,
    gamma: float,
    gae_lambda: float,
    survived: Tensor | None = None,
    end_value: float = 0.0,
) -> Tensor:
    """`reward` `[T, N]`, `value` and `first` `[T+1, N]` → A `[T, N]`; the value target is A + value[:T].

    `end_value` is κ, and `survived` `[T+1, N]` is e: where an episode ended by success or time-out.
    """
    goes_on = (~first[1:]).to(reward.dtype)  # [T, N]
    delta = reward + gamma * value[1:] * goes_on - value[:-1]
    if end_value and survived is not None:
        delta = delta + end_value * value[:-1] * survived[1:]
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
