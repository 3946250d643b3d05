"""Minibatches of a rollout: shuffled transitions, or whole environments ("columns"), as policies with memory need."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from expgen.rollout.rollout import Rollout

Order = Literal["columns", "shuffled"]


@dataclass(frozen=True, eq=False)
class Minibatch:
    """Part of a rollout: columns as `[T, B]` sequences, shuffled transitions as `[1, B]`.

    A field is gathered from the rollout when it is first read, and cached. A step recorded as a CUDA graph
    (`fast.graphs`) therefore has only the four attributes below as input, and gathers the fields it reads by itself.
    """

    rollout: Rollout
    rollout_advantage: Tensor  # [T, N] advantages to learn from, usually normalised over the rollout
    index: Tensor  # [B] environments of "columns", rows of [T · N] of "shuffled"
    order: Order

    @cached_property
    def obs(self) -> Tensor:
        return self._gather(self.rollout.obs)

    @cached_property
    def first(self) -> Tensor:
        return self._gather(self.rollout.first)

    @cached_property
    def action(self) -> Tensor:
        return self._gather(self.rollout.action)

    @cached_property
    def log_prob(self) -> Tensor:
        return self._gather(self.rollout.log_prob)

    @cached_property
    def value(self) -> Tensor:
        return self._gather(self.rollout.value)

    @cached_property
    def value_target(self) -> Tensor:
        return self._gather(self.rollout.value_target)

    @cached_property
    def advantage(self) -> Tensor:
        return self._gather(self.rollout_advantage)

    @cached_property
    def state(self) -> Tensor:
        """`[B, S]` memory before the first of the T steps; zeros for shuffled transitions."""
        state = self.rollout.state[0]  # [N, S]
        if self.order == "columns":
            return state.index_select(0, self.index)
        return state.new_zeros(len(self.index), state.shape[-1])

    def _gather(self, tensor: Tensor) -> Tensor:
        """Return this minibatch's part of `tensor` `[T or T+1, N, …]`."""
        tensor = tensor[: self.rollout.num_steps]
        if self.order == "columns":
            return tensor.index_select(1, self.index)
        return tensor.flatten(0, 1).index_select(0, self.index).unsqueeze(0)


def minibatches(
    rollout: Rollout, advantage: Tensor, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Minibatch]:
    """Yield the minibatches of one epoch over `rollout`, each transition once.

    advantage: `[T, N]`, the advantages to learn from, usually those of the rollout after normalisation.
    order: minibatches of whole environments ("columns") or of shuffled transitions.
    generator: draws the permutation, on its own device.
    """
    for index in _minibatch_indices(rollout.num_steps, rollout.num_envs, num_minibatches, order, generator):
        yield Minibatch(rollout, advantage, index, order)


def minibatch_rows(
    num_steps: int, num_envs: int, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Tensor]:
    """Yield the same minibatches as `minibatches`, for either order, as rows of `[T · N]`."""
    first_row = torch.arange(0, num_steps * num_envs, num_envs, device=generator.device).unsqueeze(1)  # [T, 1]
    for index in _minibatch_indices(num_steps, num_envs, num_minibatches, order, generator):
        yield (first_row + index).flatten() if order == "columns" else index


def _minibatch_indices(
    num_steps: int, num_envs: int, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Tensor]:
    """Yield each minibatch's environments, or its rows of `[T · N]` if transitions are shuffled."""
    count = num_envs if order == "columns" else num_steps * num_envs
    permutation = torch.randperm(count, generator=generator, device=generator.device)
    yield from permutation.tensor_split(min(num_minibatches, count))
