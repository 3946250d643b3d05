"""Drawing actions on the device, with noise that came from outside."""

import torch
from torch import Tensor

from expgen.networks.actor_critic import Policy
from expgen.rollout.rollout import Rollout


def sample(logits: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """One action per row of `logits` `[N, A]` by the Gumbel-max trick, and its log-probability."""
    action = (logits + noise).argmax(-1)  # [N]
    log_prob = torch.log_softmax(logits, -1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
    return action, log_prob


@torch.no_grad()
def act_in_slot(policy: Policy, rollout: Rollout, t: Tensor) -> None:
    """Decide step `t` (a one-element tensor): fill that slot's value, action and log-probability, and the next state.

    Tensors in, tensors out, fixed shapes and no host values, so that `accelerate` may capture it as a graph.
    """
    stored = (rollout.obs, rollout.first, rollout.state, rollout.noise)
    obs, first, state, noise = (tensor.index_select(0, t) for tensor in stored)
    output = policy(obs, first, state[0])
    action, log_prob = sample(output.logits[0], noise[0])
    rollout.value.index_copy_(0, t, output.value)
    rollout.action.index_copy_(0, t, action.unsqueeze(0))
    rollout.log_prob.index_copy_(0, t, log_prob.unsqueeze(0))
    if policy.state_size:
        rollout.state.index_copy_(0, t + 1, output.state.unsqueeze(0))
