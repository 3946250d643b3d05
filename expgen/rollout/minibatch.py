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
    T, N = rollout.num_steps, rollout.num_envs
    if order == "columns":
        per_step = (rollout.action, rollout.log_prob, rollout.value, advantage, rollout.value_target)
        permutation = torch.randperm(N, generator=generator, device=rollout.device)
        for env in permutation.tensor_split(min(num_minibatches, N)):
            obs, first, *rest = (x[:T].index_select(1, env) for x in (rollout.obs, rollout.first, *per_step))
            yield Minibatch(obs, first, rollout.state[0].index_select(0, env), *rest)
        return
    for row in transition_order(rollout, num_minibatches, order, generator):
        yield transitions(rollout, advantage, row)


def transitions(rollout: Rollout, advantage: Tensor, row: Tensor) -> Minibatch:
    """The transitions `row` `[B]` of `[T * N]`, whatever order they are in."""
    T = rollout.num_steps
    per_step = (rollout.action, rollout.log_prob, rollout.value, advantage, rollout.value_target)
    obs, first, *rest = (
        x[:T].flatten(0, 1).index_select(0, row).unsqueeze(0) for x in (rollout.obs, rollout.first, *per_step)
    )
    return Minibatch(obs, first, rollout.state[0].new_zeros(len(row), rollout.state.shape[-1]), *rest)


def transition_order(
    rollout: Rollout, num_minibatches: int, order: Order, generator: torch.Generator
) -> Iterator[Tensor]:
    """The transitions of each minibatch that `minibatches` makes from the same generator, as rows of `[T * N]`."""
    T, N = rollout.num_steps, rollout.num_envs
    if order == "columns":
        first_row = torch.arange(0, T * N, N, device=rollout.device).unsqueeze(1)  # [T, 1]
        permutation = torch.randperm(N, generator=generator, device=rollout.device)
        for env in permutation.tensor_split(min(num_minibatches, N)):
            yield (first_row + env).flatten()
        return
    permutation = torch.randperm(T * N, generator=generator, device=rollout.device)
    yield from permutation.tensor_split(min(num_minibatches, T * N))
