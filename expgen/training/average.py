"""AveragedPolicy: an exponential average of a policy's weights, kept beside the live ones (`--average`).

After the n-th update, with w_n the weights it left and a the rate,

    w̄_n = Σ_{i=1..n} a^{n−i} w_i / Σ_{i=1..n} a^{n−i}

a weighted mean of what updates have made: the initial weights are no part of it, so it needs no warm-up. It is kept by

    w̄_n = w̄_{n−1} + (1 − a) / (1 − aⁿ) · (w_n − w̄_{n−1})

whose factor is 1 at n = 1 and falls to 1 − a (as Adam corrects its moments, but the stored weights are already
corrected). An update is that of a whole rollout, however many minibatches it has, so that a run averages over about
1 / (1 − a) rollouts. Nothing is learnt from the average and no game is played with it: training is the same without it.
"""

from typing import Any, Literal

import torch
from torch import Tensor

from expgen.networks.actor_critic import Policy
from expgen.networks.plain_copy import plain_copy
from expgen.networks.state import load_module, under_prefix, with_prefix
from expgen.training.checkpoint import Checkpoint

Weights = Literal["live", "average"]  # those of a learner that a policy can be played with
FACT = "average"  # also what the average's tensors begin with


def has_average(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint holds averaged weights beside the live ones."""
    return FACT in checkpoint.facts


def policy_weights(checkpoint: Checkpoint, weights: Weights) -> dict[str, Tensor]:
    """A policy's tensors by the names of its own: the averaged ones where they are asked for and there are any."""
    is_averaged = weights == "average" and has_average(checkpoint)
    return under_prefix(FACT if is_averaged else "policy", checkpoint.tensors)


class AveragedPolicy:
    """Owns a copy of `live` that holds the average of its weights."""

    def __init__(self, live: Policy, rate: float) -> None:
        """`rate` is a, the share of the old average in the new one; from 0 to below 1."""
        self.rate, self.updates = rate, 0
        self.policy = plain_copy(live).requires_grad_(False)
        self._averaged: list[Tensor] = list(self.policy.parameters())
        self._live: list[Tensor] = list(live.parameters())
        self._seen = list(zip(self.policy.buffers(), live.buffers(), strict=True))  # what is counted, not learnt

    @torch.no_grad()
    def update(self) -> None:
        """Take in the live weights as they are now; a few launches on a GPU, whatever the number of tensors."""
        self.updates += 1
        torch._foreach_lerp_(self._averaged, self._live, (1 - self.rate) / (1 - self.rate**self.updates))
        for averaged, live in self._seen:
            averaged.copy_(live)

    def state(self) -> dict[str, Tensor]:
        """The averaged weights, under `average.…`."""
        return with_prefix(FACT, self.policy.state_dict())

    def facts(self) -> dict[str, Any]:
        """What else a checkpoint says of the average."""
        return {FACT: {"rate": self.rate, "updates": self.updates}}

    def load_state(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint that has an average."""
        load_module(self.policy, under_prefix(FACT, checkpoint.tensors), "the checkpoint's average")
        self.updates = checkpoint.facts[FACT]["updates"]
