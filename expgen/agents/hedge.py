"""Hedged exploration: the explorer's action is not taken where the ensemble agrees that it is bad (`--hedge`).

The paper's outlook asks for members that say how good every action is. A member's probabilities say it: a policy that
is trained for reward and entropy has log π(a|o) = A(o, a) / τ + c(o), so how much less likely an action is than the
likeliest one is how much lower its advantage is, in units of τ. With h = `hedge` in (0, 1):

    member j objects to a    where π_j([a] | o) < h · max_b π_j([b] | o)
    B(o)                     the actions to which at least `min_agree` members object
    a_t                      = argmax over a ∉ B(o) of log π_H(a | o, h_t) + g_a

[a] are the actions that count as a (agents.vote) and g is the Gumbel noise that the explorer's own action comes
from: that action stays where it is not in B(o), and else the explorer samples again from what is left. Where nothing is
left that the explorer may do, its action is taken all the same.

DAAC's and IDAAC's networks have an advantage head, but not for this: A_φ(o, a) = w_f·f(o) + w_a[a] + b puts the actions
in the same order on every frame (`algorithms.daac.AdvantageHead`), so it cannot tell which one is bad here.
"""

import numpy as np
from numpy import ndarray

from expgen.agents.vote import Agreement, Panel


def bad_actions(logits: ndarray, panel: Panel, agreement: Agreement, hedge: float) -> ndarray:
    """B(o) by the members' `logits` `[M, n, A]`: whether the quorum of `panel` objects to each action, `[n, A]`."""
    power = np.exp(logits - logits.max(2, keepdims=True))
    counts_as = agreement.counts_for | np.eye(len(agreement.counts_for), dtype=bool)  # [A, A]
    likely = (power / power.sum(2, keepdims=True)) @ counts_as.T.astype(power.dtype)  # [M, n, A] π_j([a] | o)
    objects = (likely < hedge * likely.max(2, keepdims=True)) & panel.sits[:, :, None]
    return objects.sum(0) >= panel.quorum[:, None]


def hedged_action(noisy_logits: ndarray, is_bad: ndarray) -> ndarray:
    """The explorer's action `[n]` by its logits with noise `[n, A]`, none of those in `is_bad` `[n, A]` if it can."""
    left = np.where(is_bad, -np.inf, noisy_logits)
    return np.where(np.isneginf(left.max(1)), noisy_logits.argmax(1), left.argmax(1))
