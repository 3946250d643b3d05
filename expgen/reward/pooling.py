"""s^↓ (Eq. 8): frames averaged over p × p cells, as integer sums so that equal frames are exactly equal.

The average of p × p bytes divided by 255 is their sum divided by 255 p². We store the exact sums and divide distances
instead. Incomplete cells at the border are dropped: 64 pixels and p = 3 give 21 cells.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from expgen.errors import InputError

LARGEST_POOL = 11  # sums of 11 × 11 bytes still fit int16


class Pooled(NamedTuple):
    """Pooled frames."""

    cell: Tensor  # [T, N, cells, C] sums of bytes (uint8 if p = 1, else int16), or unchanged floats
    scale: int  # the cell value that means 1: 255 p², or 1 for floats


def pooled(frame: Tensor, pool: int) -> Pooled:
    """Sum images `[T, N, H, W, C]` or `[T, N, H, W]` uint8 over cells of `pool` × `pool` pixels.

    Other observations are vectors and not pooled: each entry is a cell with one channel.
    """
    if frame.is_floating_point():
        return Pooled(frame.flatten(2).unsqueeze(-1), 1)
    if frame.ndim < 4:
        return Pooled(frame.flatten(2).unsqueeze(-1), 255)
    if frame.ndim == 4:
        frame = frame.unsqueeze(-1)  # grey images
    side = min(frame.shape[2:4])
    if pool > side:
        raise InputError(f"--pool is {pool} for images with a side of {side}; accepted: 1 to {side}")
    if pool > 1:
        frame = _sums(_sums(frame, pool, 2), pool, 3)
    return Pooled(frame.flatten(2, 3), 255 * pool * pool)


def _sums(frame: Tensor, pool: int, axis: int) -> Tensor:
    """Sum `pool` neighbours along `axis`; adding slices is several times faster than `sum` on the CPU."""
    length = frame.shape[axis] // pool * pool
    first, *rest = (frame.movedim(axis, 0)[i:length:pool].movedim(0, axis) for i in range(pool))
    total = first.to(torch.int16, memory_format=torch.contiguous_format, copy=True)
    for part in rest:
        total += part
    return total
