"""Hedged exploration: the explorer avoids actions that the ensemble agrees are bad (`--hedge`).

The paper's outlook suggests members that rate every action. A member's probabilities are such a rating: a policy
trained for reward and entropy has log π(a|o) = A(o, a) / τ + c(o), so the log ratio of an action's probability to that
of the most likely action is the difference of their advantages in units of τ. With h = `hedge` in (0, 1):

    member j objects to a    if π_j([a] | o) < h · max_b π_j([b] | o)
    B(o)                     the actions to which at least `min_agree` members object
    a_t                      = argmax over a ∉ B(o) of log π_H(a | o, h_t) + g_a

[a] is the set of actions that count as a (agents.vote) and g the Gumbel noise of the explorer's own action, which is
kept if it is not in B(o), or if no other action remains that the explorer can take.

The advantage head of DAAC and IDAAC is not suitable: A_φ(o, a) = w_f·f(o) + w_a[a] + b ranks the actions in the same
order on every frame (`algorithms.daac.AdvantageHead`).
"""

import numpy as np
from numpy import ndarray

from expgen.agents.vote import Agreement, Panel


def bad_actions(logits: ndarray, panel: Panel, agreement: Agreement, hedge: float) -> ndarray:
    """Return B(o) from the members' `logits` `[M, n, A]`: whether the quorum objects to each action, `[n, A]` bool."""
    power = np.exp(logits - logits.max(2, keepdims=True))
    counts_as = agreement.counts_for | np.eye(len(agreement.counts_for), dtype=bool)  # [A, A]
    likely = (power / power.sum(2, keepdims=True)) @ counts_as.T.astype(power.dtype)  # [M, n, A] π_j([a] | o)
    objects = (likely < hedge * likely.max(2, keepdims=True)) & panel.is_voter[:, :, None]
    return objects.sum(0) >= panel.quorum[:, None]


def hedged_action(noisy_logits: ndarray, is_bad: ndarray) -> ndarray:
    """Return the argmax `[n]` of the explorer's `noisy_logits` `[n, A]`, without `is_bad` `[n, A]` if possible."""
    allowed = np.where(is_bad, -np.inf, noisy_logits)
    return np.where(np.isneginf(allowed.max(1)), noisy_logits.argmax(1), allowed.argmax(1))
