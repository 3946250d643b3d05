"""Minibatches: random transitions, or whole environment columns (always so when the policy has memory)."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from expgen.rollout.rollout import Rollout

Order = Literal["columns", "shuffled"]


class Minibatch(NamedTuple):
    """Some of a rollout as `[T, B]` sequences; shuffled transitions come as `[1, B]`."""

    obs: Tensor
    first: Tensor
    state: Tensor  # [B, S] memory before the first of the T steps
    action: Tensor
    log_prob: Tensor
    value: Tensor
    advantage: Tensor
    value_target: Tensor


def minibatches(
    rollout: Rollout, advantage: Tensor, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Minibatch]:
    """One epoch over the rollout, each transition once; `advantage` `[T, N]` is the (normalised) one to learn from."""
    whole = everything(rollout, advantage)
    for place in minibatch_places(rollout, num_minibatches, order, generator):
        yield gather(whole, place, order)


def minibatch_places(
    rollout: Rollout, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Tensor]:
    """What each minibatch of an epoch is made of: environments, or rows of `[T * N]` where transitions are shuffled."""
    count = rollout.num_envs if order == "columns" else rollout.num_steps * rollout.num_envs
    permutation = torch.randperm(count, generator=generator, device=rollout.device)
    yield from permutation.tensor_split(min(num_minibatches, count))


def everything(rollout: Rollout, advantage: Tensor) -> Minibatch:
    """The whole rollout as one minibatch `[T, N]`, where it lies; `advantage` `[T, N]` is the one to learn from."""
    T = rollout.num_steps
    per_step = (rollout.action[:T], rollout.log_prob[:T], rollout.value[:T], advantage, rollout.value_target)
    return Minibatch(rollout.obs[:T], rollout.first[:T], rollout.state[0], *per_step)


def gather(whole: Minibatch, place: Tensor, order: Order) -> Minibatch:
    """The minibatch of `whole` at `place`. Tensors in, tensors out, no host values, so that a Runner may replay it."""
    state, stored = whole.state, (whole.obs, whole.first, *whole[3:])
    if order == "columns":
        obs, first, *rest = (x.index_select(1, place) for x in stored)
        return Minibatch(obs, first, state.index_select(0, place), *rest)
    obs, first, *rest = (x.flatten(0, 1).index_select(0, place).unsqueeze(0) for x in stored)
    return Minibatch(obs, first, state.new_zeros(len(place), state.shape[-1]), *rest)


def transition_order(
    rollout: Rollout, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Tensor]:
    """The transitions of each minibatch that `minibatches` makes from the same generator, as rows of `[T * N]`."""
    T, N = rollout.num_steps, rollout.num_envs
    first_row = torch.arange(0, T * N, N, device=rollout.device).unsqueeze(1)  # [T, 1]
    for place in minibatch_places(rollout, num_minibatches, order, generator):
        yield (first_row + place).flatten() if order == "columns" else place
