"""The first convolution and max-pool of an IMPALA encoder in one pass, from the bytes of the picture.

Unfused, the 64×64×16 map between the two is most of the network's memory traffic. Here a program takes a run of pooled
pixels. Each is the maximum over a 3×3 window of convolutions, which together see five rows of five image pixels:
fifteen neighbouring bytes a row, padded to 16. For window column `wx` and kernel row `ky` the convolution is a product
of such a row with a 16×16 matrix that holds the kernel's row shifted by `wx` pixels:
`expanded[wx, ky, 3·q + colour, out] = kernel[out, colour, ky, q − wx]`. Which of the nine positions won is stored, and
gradients flow to it alone. They are products with three rows at once, and a fourth of zeros to make a power of two.
Bytes up to 255 are exact in bfloat16; the division by 255 comes after the product.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

ROW = 16  # five pixels of three bytes, and one that is always zero
VIEW = 4  # rows: three, and one whose weights are zero
WINDOW = 3


@triton.jit
def _image_row(x, picture, row, left, valid, H: tl.constexpr, W: tl.constexpr, dtype: tl.constexpr):
    """Five pixels' bytes from `left` on, `[pixels, 16]`, zero outside the picture."""
    byte = tl.arange(0, 16)
    col = left[:, None] + (byte // 3)[None, :]
    inside = (valid & (row >= 0) & (row < H))[:, None] & (col >= 0) & (col < W) & (byte < 15)[None, :]
    offset = ((picture * H + row) * W + left)[:, None] * 3 + byte[None, :]
    return tl.load(x + offset, mask=inside, other=0).to(dtype)


@triton.jit
def _window_row(x, picture, top, left, valid, H: tl.constexpr, W: tl.constexpr, dtype: tl.constexpr):
    """Five pixels' bytes of each of three image rows from (`top`, `left`) on, `[pixels, 64]`, zero outside."""
    place = tl.arange(0, 64)
    down, byte = place // 16, place % 16
    row, col = top[:, None] + down[None, :], left[:, None] + (byte // 3)[None, :]
    inside = valid[:, None] & (row >= 0) & (row < H) & (col >= 0) & (col < W) & ((down < 3) & (byte < 15))[None, :]
    offset = ((picture * H + top) * W + left)[:, None] * 3 + (down * W * 3 + byte)[None, :]
    return tl.load(x + offset, mask=inside, other=0).to(dtype)


@triton.jit
def _stem(
    x, expanded, bias, y, winner, num_pooled, H: tl.constexpr, W: tl.constexpr, CO: tl.constexpr, BLOCK: tl.constexpr
):
    pooled = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = pooled < num_pooled
    i, j, picture = (pooled // (W // 2)) % (H // 2), pooled % (W // 2), pooled // (H * W // 4)
    co = tl.arange(0, CO)
    matrix = expanded + tl.arange(0, 16)[:, None] * CO + co[None, :]
    best = tl.full((BLOCK, CO), float("-inf"), tl.float32)
    won = tl.zeros((BLOCK, CO), tl.int32)
    for wy in tl.static_range(3):
        left = tl.zeros((BLOCK, CO), tl.float32)
        centre = tl.zeros((BLOCK, CO), tl.float32)
        right = tl.zeros((BLOCK, CO), tl.float32)
        for ky in tl.static_range(3):
            row = _image_row(x, picture, 2 * i - 2 + wy + ky, 2 * j - 2, valid, H, W, expanded.dtype.element_ty)
            left = tl.dot(row, tl.load(matrix + ky * 16 * CO), left)
            centre = tl.dot(row, tl.load(matrix + (4 + ky) * 16 * CO), centre)
            right = tl.dot(row, tl.load(matrix + (8 + ky) * 16 * CO), right)
        in_row = (2 * i - 1 + wy >= 0)[:, None]  # the window sticks out above and to the left, never below or right
        left = tl.where(in_row & (j > 0)[:, None], left, float("-inf"))
        centre = tl.where(in_row, centre, float("-inf"))
        right = tl.where(in_row, right, float("-inf"))
        won = tl.where(left > best, wy * 3, won)
        best = tl.maximum(left, best)
        won = tl.where(centre > best, wy * 3 + 1, won)
        best = tl.maximum(centre, best)
        won = tl.where(right > best, wy * 3 + 2, won)
        best = tl.maximum(right, best)
    offset = pooled[:, None] * CO + co[None, :]
    best = best * (1 / 255) + tl.load(bias + co)[None, :]
    tl.store(y + offset, best.to(y.dtype.element_ty), mask=valid[:, None])
    tl.store(winner + offset, won.to(tl.uint8), mask=valid[:, None])


@triton.jit
def _won_here(gradient, won, position):
    """The gradient of the convolutions at one window position."""
    return tl.where(won == position, gradient, 0.0).to(gradient.dtype)


@triton.jit
def _stem_weight_gradient(
    x, dy, winner, partial, num_pooled,
    H: tl.constexpr, W: tl.constexpr, CO: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Sums over some pixels, as `[3, 64, CO]` like `expanded` and then the bias's `[CO]`.

    This program has the gradients that went to one row of the window.
    """
    wy, part = tl.program_id(0), tl.program_id(1)
    co = tl.arange(0, CO)
    left = tl.zeros((64, CO), tl.float32)
    centre = tl.zeros((64, CO), tl.float32)
    right = tl.zeros((64, CO), tl.float32)
    bias = tl.zeros((CO,), tl.float32)
    for chunk in range(CHUNKS):
        pooled = (part * CHUNKS + chunk) * BLOCK + tl.arange(0, BLOCK)
        valid = pooled < num_pooled
        i, j, picture = (pooled // (W // 2)) % (H // 2), pooled % (W // 2), pooled // (H * W // 4)
        offset = pooled[:, None] * CO + co[None, :]
        gradient = tl.load(dy + offset, mask=valid[:, None], other=0.0)
        won = tl.load(winner + offset, mask=valid[:, None], other=255)
        bias += tl.sum(gradient.to(tl.float32), 0)
        view = tl.trans(_window_row(x, picture, 2 * i - 2 + wy, 2 * j - 2, valid, H, W, dy.dtype.element_ty))
        left = tl.dot(view, _won_here(gradient, won, wy * 3), left)
        centre = tl.dot(view, _won_here(gradient, won, wy * 3 + 1), centre)
        right = tl.dot(view, _won_here(gradient, won, wy * 3 + 2), right)
    out = partial + (part * 3 + wy) * (3 * 64 * CO + CO)
    matrix = out + tl.arange(0, 64)[:, None] * CO + co[None, :]
    tl.store(matrix, left * (1 / 255))
    tl.store(matrix + 64 * CO, centre * (1 / 255))
    tl.store(matrix + 2 * 64 * CO, right * (1 / 255))
    tl.store(out + 3 * 64 * CO + co, tl.where(wy == 0, bias, 0.0))


def stem(
    x: Tensor, expanded: Tensor, bias: Tensor, channels_out: int, block: int = 64, warps: int = 2
) -> tuple[Tensor, Tensor]:
    """Bytes `[B, H, W, 3]` → pooled `[B, H/2, W/2, CO]` of `expanded`'s type, and which window position won.

    Augmented pictures are floats on the same scale; they are rounded to `expanded`'s type as they are loaded.
    """
    B, H, W, _ = x.shape
    y = expanded.new_empty(B, H // 2, W // 2, channels_out)
    winner = torch.empty_like(y, dtype=torch.uint8)
    num_pooled = B * H * W // 4
    _stem[(triton.cdiv(num_pooled, block),)](
        x, expanded, bias, y, winner, num_pooled, H, W, channels_out, block, num_warps=warps
    )  # fmt: skip
    return y, winner


def stem_weight_gradient(
    x: Tensor, dy: Tensor, winner: Tensor, parts: int = 528, block: int = 64, warps: int = 4, stages: int = 1
) -> Tensor:
    """dL/dexpanded `[3, 4, 16, CO]` and then dL/dbias `[CO]`, flat, in float32."""
    B, H, W, _ = x.shape
    CO, num_pooled = dy.shape[-1], B * H * W // 4
    chunks = triton.cdiv(triton.cdiv(num_pooled, parts), block)
    parts = triton.cdiv(num_pooled, chunks * block)
    partial = dy.new_empty(WINDOW * parts, WINDOW * VIEW * ROW * CO + CO, dtype=torch.float32)
    _stem_weight_gradient[(WINDOW, parts)](
        x, dy, winner, partial, num_pooled, H, W, CO, block, chunks, num_warps=warps, num_stages=stages
    )  # fmt: skip
    return partial.sum(0)
