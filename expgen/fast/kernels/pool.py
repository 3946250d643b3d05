"""Max-pool 3×3 with stride 2 over pictures stored height × width × channel, and its gradient."""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _pool(x, y, winner, num_pooled, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr):
    pooled = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel = tl.arange(0, C)[None, :]
    valid = pooled < num_pooled
    i, j, picture = (pooled // (W // 2)) % (H // 2), pooled % (W // 2), pooled // (H * W // 4)
    best = tl.full((BLOCK, C), float("-inf"), tl.float32)
    won = tl.zeros((BLOCK, C), tl.int32)
    for position in tl.static_range(9):
        row, col = 2 * i - 1 + position // 3, 2 * j - 1 + position % 3
        inside = valid & (row >= 0) & (col >= 0)  # the window sticks out above and to the left, never below or right
        offset = ((picture * H + row) * W + col)[:, None] * C + channel
        candidate = tl.load(x + offset, mask=inside[:, None], other=float("-inf")).to(tl.float32)
        won = tl.where(candidate > best, position, won)
        best = tl.maximum(candidate, best)
    offset = pooled[:, None] * C + channel
    tl.store(y + offset, best.to(y.dtype.element_ty), mask=valid[:, None])
    tl.store(winner + offset, won.to(tl.uint8), mask=valid[:, None])


@triton.jit
def _unpool(dy, winner, dx, num_pixels, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BLOCK: tl.constexpr):
    """A pixel of an odd row or column lies in two windows that way, else in one: at most four gradients add up."""
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    channel = tl.arange(0, C)[None, :]
    valid = pixel < num_pixels
    row, col, picture = (pixel // W) % H, pixel % W, pixel // (H * W)
    total = tl.zeros((BLOCK, C), tl.float32)
    for corner in tl.static_range(4):
        i, j = row // 2 + corner // 2, col // 2 + corner % 2
        inside = valid & (i < H // 2) & (j < W // 2) & (row % 2 >= corner // 2) & (col % 2 >= corner % 2)
        position = (row - 2 * i + 1) * 3 + col - 2 * j + 1
        offset = ((picture * (H // 2) + i) * (W // 2) + j)[:, None] * C + channel
        won = tl.load(winner + offset, mask=inside[:, None], other=255).to(tl.int32)
        gradient = tl.load(dy + offset, mask=inside[:, None], other=0.0).to(tl.float32)
        total += tl.where(won == position[:, None], gradient, 0.0)
    tl.store(dx + pixel[:, None] * C + channel, total.to(dx.dtype.element_ty), mask=valid[:, None])


def max_pool(x: Tensor, block: int = 64) -> tuple[Tensor, Tensor]:
    """`[B, H, W, C]` → `[B, H/2, W/2, C]`, and which of its window's nine positions each came from."""
    B, H, W, C = x.shape
    y = x.new_empty(B, H // 2, W // 2, C)
    winner = torch.empty_like(y, dtype=torch.uint8)
    num_pooled = B * H * W // 4
    _pool[(triton.cdiv(num_pooled, block),)](x, y, winner, num_pooled, H, W, C, block)
    return y, winner


def max_pool_gradient(dy: Tensor, winner: Tensor, block: int = 64) -> Tensor:
    """The gradient of `max_pool`'s input from that of its output."""
    B, H, W, C = dy.shape
    dx = dy.new_empty(B, 2 * H, 2 * W, C)
    num_pixels = B * 4 * H * W
    _unpool[(triton.cdiv(num_pixels, block),)](dy, winner, dx, num_pixels, 2 * H, 2 * W, C, block)
    return dx
