"""s^↓ (Eq. 8): frames averaged over square cells, kept as whole numbers so that equal frames are exactly equal.

The average of p × p bytes divided by 255 is their sum divided by 255 p². We keep the sums, which are exact, and divide
distances instead. Rows and columns that fill no cell are dropped: 64 pixels and p = 3 make 21 cells.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from expgen.errors import InputError

LARGEST_POOL = 11  # the sum of 11 × 11 bytes is the largest that fits 16 bits


class Pooled(NamedTuple):
    """Frames as cells."""

    cell: Tensor  # [T, N, cells, C] sums of bytes (uint8 where p = 1, else int16), or floats as they came
    white: int  # the sum that stands for 1: 255 p², or 1 for floats


def pooled(frame: Tensor, pool: int) -> Pooled:
    """Pictures of bytes `[T, N, H, W, C]` or `[T, N, H, W]` as sums over cells of `pool` × `pool` pixels.

    Anything else is a vector, which has no neighbourhoods to average over: each entry is a cell with one channel.
    """
    if frame.is_floating_point():
        return Pooled(frame.flatten(2).unsqueeze(-1), 1)
    if frame.ndim < 4:
        return Pooled(frame.flatten(2).unsqueeze(-1), 255)
    if frame.ndim == 4:
        frame = frame.unsqueeze(-1)  # grey
    side = min(frame.shape[2:4])
    if pool > side:
        raise InputError(f"--pool is {pool} for pictures with a side of {side}; accepted: 1 to {side}")
    if pool > 1:
        frame = _sums(_sums(frame, pool, 2), pool, 3)
    return Pooled(frame.flatten(2, 3), 255 * pool * pool)


def _sums(frame: Tensor, pool: int, axis: int) -> Tensor:
    """Sums of `pool` neighbours along `axis`; adding slices is several times faster than `sum` on the CPU."""
    length = frame.shape[axis] // pool * pool
    first, *rest = (frame.movedim(axis, 0)[i:length:pool].movedim(0, axis) for i in range(pool))
    total = first.to(torch.int16, memory_format=torch.contiguous_format, copy=True)
    for part in rest:
        total += part
    return total
