"""Pairs of frames of one level and which of the two comes earlier in its episode: what IDAAC's classifier is asked."""

from typing import NamedTuple

import torch
from torch import Tensor


class Pairs(NamedTuple):
    """A partner for every transition; frames count as rows of `[(T+1) · N]`, the first T·N of which are acted in."""

    partner: Tensor  # [T · N] row of frame j
    is_earlier: Tensor  # [T · N] float: 1 where j comes earlier in its episode than i
    elapsed: Tensor  # [N] steps since their start of the episodes under way at the rollout's end


def steps_in_episode(first: Tensor, elapsed: Tensor) -> Tensor:
    """Steps since the episode's start of every frame, from `first` `[T+1, N]` and `elapsed` `[N]` at the first."""
    time = torch.arange(len(first), device=first.device).unsqueeze(1)  # [T+1, 1]
    start = torch.where(first, time, -1 - time[-1] - elapsed)  # where nothing starts: before anything else
    start[0] = torch.where(first[0], 0, -elapsed)
    return time - start.cummax(0).values


def partners(level: Tensor, num_rows: int, generator: torch.Generator) -> Tensor:
    """For each of the first `num_rows` of `level` `[R]` a row of the same level, uniformly, itself included."""
    by_level, row = level.sort()
    begin = torch.searchsorted(by_level, level[:num_rows])
    end = torch.searchsorted(by_level, level[:num_rows], right=True)
    number = torch.rand(num_rows, generator=generator, device=level.device, dtype=torch.float64)
    return row[begin + (number * (end - begin)).long()]


def draw_pairs(level: Tensor, first: Tensor, elapsed: Tensor, generator: torch.Generator) -> Pairs:
    """From `level` and `first` `[T+1, N]`, across environments and episodes; frames of equal age count as not earlier.

    The authors' code stores level and age one slot late, which mislabels frames at episode boundaries; ours does not.
    """
    step = steps_in_episode(first, elapsed)  # [T+1, N]
    num_rows = first[:-1].numel()
    partner = partners(level.flatten(), num_rows, generator)
    age = step.flatten()
    return Pairs(partner, (age[partner] < age[:num_rows]).float(), step[-1])
