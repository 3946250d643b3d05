"""AveragedPolicy: an exponential average of a policy's weights, kept beside the live ones (`--average`).

After the n-th update, with w_n the weights it left and a the rate,

    w̄_n = Σ_{i=1..n} a^{n−i} w_i / Σ_{i=1..n} a^{n−i}

a weighted mean of the weights after each update, without the initial weights, so it needs no warm-up. It is updated by

    w̄_n = w̄_{n−1} + (1 − a) / (1 − aⁿ) · (w_n − w̄_{n−1})

whose factor is 1 at n = 1 and falls to 1 − a: the bias correction of Adam, applied to the stored weights. An update is
one whole rollout with all its minibatches, so the average spans about 1 / (1 − a) rollouts. Training does not use the
average and is bit-equal without it.
"""

from typing import Any, Literal

import torch
from torch import Tensor

from expgen.networks.actor_critic import Policy
from expgen.networks.plain_copy import plain_copy
from expgen.networks.state import load_module, under_prefix, with_prefix
from expgen.training.checkpoint import Checkpoint

Weights = Literal["live", "average"]  # which weights of a learner to play with
FACT = "average"  # key in a checkpoint's facts, and prefix of the averaged tensors


def has_average(checkpoint: Checkpoint) -> bool:
    """Return whether the checkpoint holds averaged weights besides the live ones."""
    return FACT in checkpoint.facts


def policy_weights(checkpoint: Checkpoint, weights: Weights) -> dict[str, Tensor]:
    """Return the policy's state dict; the averaged weights if `weights` is "average" and the checkpoint has them."""
    is_averaged = weights == "average" and has_average(checkpoint)
    return under_prefix(FACT if is_averaged else "policy", checkpoint.tensors)


class AveragedPolicy:
    """A copy of the policy `live` that holds the average of its weights."""

    def __init__(self, live: Policy, rate: float) -> None:
        """`rate` is a in [0, 1): the share of the old average in the new one."""
        self.rate, self.updates = rate, 0
        self.policy = plain_copy(live).requires_grad_(False)
        self._averaged: list[Tensor] = list(self.policy.parameters())
        self._live: list[Tensor] = list(live.parameters())
        self._buffers = list(zip(self.policy.buffers(), live.buffers(), strict=True))  # copied, not averaged

    @torch.no_grad()
    def update(self) -> None:
        """Add the current live weights to the average, in a few kernel launches on a GPU."""
        self.updates += 1
        torch._foreach_lerp_(self._averaged, self._live, (1 - self.rate) / (1 - self.rate**self.updates))
        for averaged, live in self._buffers:
            averaged.copy_(live)

    def state(self) -> dict[str, Tensor]:
        """Return the averaged weights, named `average.…`, for a checkpoint."""
        return with_prefix(FACT, self.policy.state_dict())

    def facts(self) -> dict[str, Any]:
        """Return rate and number of updates for a checkpoint's facts."""
        return {FACT: {"rate": self.rate, "updates": self.updates}}

    def load_state(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint that holds an average."""
        load_module(self.policy, under_prefix(FACT, checkpoint.tensors), "the checkpoint's average")
        self.updates = checkpoint.facts[FACT]["updates"]
