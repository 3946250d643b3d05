"""Minibatches: random transitions, or whole environment columns (always so when the policy has memory)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from expgen.rollout.rollout import Rollout

Order = Literal["columns", "shuffled"]


def _gathered(name: str) -> "cached_property[Tensor]":
    """The rollout's tensor `name` as a field of a minibatch."""
    return cached_property(lambda batch: batch._gather(getattr(batch.rollout, name)))


@dataclass(frozen=True, eq=False)
class Minibatch:
    """Some of a rollout as `[T, B]` sequences, shuffled transitions as `[1, B]`; a field is gathered when read."""

    rollout: Rollout
    rollout_advantage: Tensor  # [T, N] of the whole rollout, the (normalised) one to learn from
    index: Tensor  # [B] environments; where transitions are shuffled, rows of [T · N]
    order: Order

    obs, first, action = _gathered("obs"), _gathered("first"), _gathered("action")
    log_prob, value, value_target = _gathered("log_prob"), _gathered("value"), _gathered("value_target")

    @cached_property
    def state(self) -> Tensor:
        """`[B, S]` memory before the first of the T steps; zeros for shuffled transitions."""
        state = self.rollout.state[0]  # [N, S]
        if self.order == "columns":
            return state.index_select(0, self.index)
        return state.new_zeros(len(self.index), state.shape[-1])

    @cached_property
    def advantage(self) -> Tensor:
        return self._gather(self.rollout_advantage)

    def _gather(self, stored: Tensor) -> Tensor:
        """The part of `stored` `[T or T+1, N, …]` that belongs to this minibatch."""
        stored = stored[: self.rollout.num_steps]
        if self.order == "columns":
            return stored.index_select(1, self.index)
        return stored.flatten(0, 1).index_select(0, self.index).unsqueeze(0)


def minibatches(
    rollout: Rollout, advantage: Tensor, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Minibatch]:
    """One epoch over the rollout, each transition once; `advantage` `[T, N]` is the (normalised) one to learn from."""
    for index in minibatch_indices(rollout, num_minibatches, order, generator):
        yield Minibatch(rollout, advantage, index, order)


def minibatch_indices(
    rollout: Rollout, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Tensor]:
    """What each minibatch of an epoch is made of: environments, or rows of `[T · N]` where transitions are shuffled."""
    count = rollout.num_envs if order == "columns" else rollout.num_steps * rollout.num_envs
    permutation = torch.randperm(count, generator=generator, device=rollout.device)
    yield from permutation.tensor_split(min(num_minibatches, count))


def transition_order(
    rollout: Rollout, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Tensor]:
    """The transitions of each minibatch that `minibatches` makes from the same generator, as rows of `[T · N]`."""
    T, N = rollout.num_steps, rollout.num_envs
    first_row = torch.arange(0, T * N, N, device=rollout.device).unsqueeze(1)  # [T, 1]
    for index in minibatch_indices(rollout, num_minibatches, order, generator):
        yield (first_row + index).flatten() if order == "columns" else index
