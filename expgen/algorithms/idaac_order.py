"""IDAAC's frame pairs: each frame gets a partner of the same level, and a label for which of the two is earlier."""

from typing import NamedTuple

import torch
from torch import Tensor


class Pairs(NamedTuple):
    """A partner for each of the T · N transitions. Frames are indexed by row of `[(T+1) · N]`."""

    partner: Tensor  # [T · N] row of the partner j of frame i
    is_earlier: Tensor  # [T · N] float: 1 if j is earlier in its episode than i is in its own
    elapsed: Tensor  # [N] age of the current episodes at the rollout's end, in steps


def steps_in_episode(first: Tensor, elapsed: Tensor) -> Tensor:
    """Return each frame's age `[T+1, N]` in steps, from `first` `[T+1, N]` and the age `elapsed` `[N]` at slot 0."""
    time = torch.arange(len(first), device=first.device).unsqueeze(1)  # [T+1, 1]
    start = torch.where(first, time, -1 - time[-1] - elapsed)  # below every real start where no episode begins
    start[0] = torch.where(first[0], 0, -elapsed)
    return time - start.cummax(0).values


def partners(level: Tensor, num_rows: int, generator: torch.Generator) -> Tensor:
    """Draw for each of the first `num_rows` rows of `level` `[R]` a row of that level, uniformly, possibly itself."""
    by_level, row = level.sort()
    begin = torch.searchsorted(by_level, level[:num_rows])
    end = torch.searchsorted(by_level, level[:num_rows], right=True)
    uniform = torch.rand(num_rows, generator=generator, device=level.device, dtype=torch.float64)
    return row[begin + (uniform * (end - begin)).long()]


def draw_pairs(level: Tensor, first: Tensor, elapsed: Tensor, generator: torch.Generator) -> Pairs:
    """Draw pairs from `level` and `first` `[T+1, N]`, across environments and episodes; equal age is not earlier.

    The authors' code stores level and age one slot late, which mislabels frames at episode boundaries; ours does not.
    """
    age = steps_in_episode(first, elapsed)  # [T+1, N]
    num_rows = first[:-1].numel()
    partner = partners(level.flatten(), num_rows, generator)
    is_earlier = age.flatten()[partner] < age.flatten()[:num_rows]
    return Pairs(partner, is_earlier.float(), age[-1])
