"""3×3 convolutions of few channels over pictures stored height × width × channel: forward, input and weight gradients.

Sixteen or thirty-two channels are too few for the library's kernels. Here a program takes a run of neighbouring pixels
and multiplies each of the nine shifted views of them, `[pixels, channels in]`, with that tap's `[channels in, channels
out]` matrix; the shifted views overlap, so that all but the first come out of the nearest cache. What follows a
convolution in a residual block (bias, ReLU, skip, the mask of a ReLU's gradient) happens before the result is stored.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _shifted(x, pixel, row, col, valid, dy, dx, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    """The pixels `(dy, dx)` away from `pixel`, `[pixels, C]`, zero outside the picture."""
    inside = valid & (row + dy >= 0) & (row + dy < H) & (col + dx >= 0) & (col + dx < W)
    offset = (pixel + dy * W + dx)[:, None] * C + tl.arange(0, C)[None, :]
    return tl.load(x + offset, mask=inside[:, None], other=0.0)


@triton.jit
def _conv(
    x, weight, bias, mask, skip, y, num_pixels,
    H: tl.constexpr, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, BLOCK: tl.constexpr,
    RELU_IN: tl.constexpr, RELU_OUT: tl.constexpr,
    HAS_BIAS: tl.constexpr, HAS_MASK: tl.constexpr, HAS_SKIP: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    valid = pixel < num_pixels
    row, col = (pixel // W) % H, pixel % W
    channel = tl.arange(0, CO)
    matrix = weight + tl.arange(0, CI)[:, None] * CO + channel[None, :]
    total = tl.zeros((BLOCK, CO), tl.float32)
    for tap in tl.static_range(9):
        view = _shifted(x, pixel, row, col, valid, tap // 3 - 1, tap % 3 - 1, H, W, CI)
        if RELU_IN:
            view = tl.maximum(view, 0.0).to(x.dtype.element_ty)
        total = tl.dot(view, tl.load(matrix + tap * CI * CO), total)
    offset = pixel[:, None] * CO + channel[None, :]
    if HAS_BIAS:
        total += tl.load(bias + channel)[None, :]
    if RELU_OUT:
        total = tl.maximum(total, 0.0)
    if HAS_MASK:
        total = tl.where(tl.load(mask + offset, mask=valid[:, None], other=0.0) > 0, total, 0.0)
    if HAS_SKIP:
        total += tl.load(skip + offset, mask=valid[:, None], other=0.0).to(tl.float32)
    tl.store(y + offset, total.to(y.dtype.element_ty), mask=valid[:, None])


@triton.jit
def _weight_gradient(
    x, dy, partial, num_pixels, H: tl.constexpr, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr,
    BLOCK: tl.constexpr, CHUNKS: tl.constexpr, RELU_IN: tl.constexpr,
):  # fmt: skip
    """Sums over some pixels, as `[CO, 3, 3, CI]` and then the bias's `[CO]`; this program has one row of the kernel."""
    ky, part = tl.program_id(0), tl.program_id(1)
    ci, co = tl.arange(0, CI), tl.arange(0, CO)
    left = tl.zeros((CI, CO), tl.float32)
    centre = tl.zeros((CI, CO), tl.float32)
    right = tl.zeros((CI, CO), tl.float32)
    bias = tl.zeros((CO,), tl.float32)
    for chunk in range(CHUNKS):
        pixel = (part * CHUNKS + chunk) * BLOCK + tl.arange(0, BLOCK)
        valid = pixel < num_pixels
        row, col = (pixel // W) % H, pixel % W
        gradient = tl.load(dy + pixel[:, None] * CO + co[None, :], mask=valid[:, None], other=0.0)
        bias += tl.sum(gradient.to(tl.float32), 0)
        view = _shifted(x, pixel, row, col, valid, ky - 1, -1, H, W, CI)
        view = tl.maximum(view, 0.0).to(x.dtype.element_ty) if RELU_IN else view
        left = tl.dot(tl.trans(view), gradient, left)
        view = _shifted(x, pixel, row, col, valid, ky - 1, 0, H, W, CI)
        view = tl.maximum(view, 0.0).to(x.dtype.element_ty) if RELU_IN else view
        centre = tl.dot(tl.trans(view), gradient, centre)
        view = _shifted(x, pixel, row, col, valid, ky - 1, 1, H, W, CI)
        view = tl.maximum(view, 0.0).to(x.dtype.element_ty) if RELU_IN else view
        right = tl.dot(tl.trans(view), gradient, right)
    out = partial + part * (9 * CI * CO + CO)
    matrix = out + co[None, :] * 9 * CI + ky * 3 * CI + ci[:, None]
    tl.store(matrix, left)
    tl.store(matrix + CI, centre)
    tl.store(matrix + 2 * CI, right)
    if ky == 0:
        tl.store(out + 9 * CI * CO + co, bias)


def conv3x3(
    x: Tensor,
    weight: Tensor,
    channels_out: int,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    skip: Tensor | None = None,
    relu_in: bool = False,
    relu_out: bool = False,
    block: int = 128,
    warps: int = 4,
) -> Tensor:
    """`x` `[B, H, W, CI]`, `weight` flat `[9, CI, CO]` → [relu](conv([relu] x) + bias) · [mask > 0] + skip."""
    B, H, W, CI = x.shape
    y = x.new_empty(B, H, W, channels_out)
    num_pixels = B * H * W
    _conv[(triton.cdiv(num_pixels, block),)](
        x, weight, bias, mask, skip, y, num_pixels, H, W, CI, channels_out, block, relu_in, relu_out,
        bias is not None, mask is not None, skip is not None, num_warps=warps,
    )  # fmt: skip
    return y


def weight_gradient(
    x: Tensor, dy: Tensor, relu_in: bool = False, parts: int = 528, block: int = 64, warps: int = 2, stages: int = 3
) -> Tensor:
    """dL/dweight as `[CO, 3, 3, CI]` and then dL/dbias `[CO]`, flat, in float32."""
    B, H, W, CI = x.shape
    CO, num_pixels = dy.shape[-1], B * H * W
    chunks = triton.cdiv(triton.cdiv(num_pixels, parts), block)
    parts = triton.cdiv(num_pixels, chunks * block)
    partial = x.new_empty(parts, 9 * CI * CO + CO, dtype=torch.float32)
    _weight_gradient[(3, parts)](
        x, dy, partial, num_pixels, H, W, CI, CO, block, chunks, relu_in, num_warps=warps, num_stages=stages
    )  # fmt: skip
    return partial.sum(0)
