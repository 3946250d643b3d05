"""The kernels of cuda/impala.cu as functions of tensors, with their grids and sizes of shared memory."""

from typing import Protocol

import torch
from torch import Tensor

from expgen.fast.kernels.impala_weights import Packed

IMAGE_SIDE = 64
IMAGE_BYTES_PER_ROW = 2 * 68 * 8  # two copies of 68 pixels of four bfloat16
STEM_BAND = 16  # pooled rows whose weight gradients a thread block sums at a time
STEM_CHANNELS = 16
PARTS = 128  # partial sums of weight gradients; twice as many thread blocks fill an H200
MAX_SHARED = 34 * 40 * 32 * 2  # bytes, used by `pooled_backward_32` and `block_forward_32`


class Launcher(Protocol):
    """Runs kernels: a `CudaModule`, or an emulator in tests."""

    def launch(self, name: str, grid: tuple[int, int], shared_bytes: int, *arguments: Tensor | int | None) -> None: ...


class ImpalaKernels:
    """Kernels on maps `[B, side, side, channels]` in bfloat16, with 16 channels in the first stage and 32 after it."""

    def __init__(self, launcher: Launcher) -> None:
        self.launch = launcher.launch

    def stem(self, obs: Tensor, conv: Packed, keep: bool) -> tuple[Tensor, Tensor | None]:
        """Return `pooled` of the first convolution, from images `[B, 64, 64, 3]` in uint8 or in float from 0 to 255."""
        y, winner = _pooled(conv.forward, len(obs), IMAGE_SIDE // 2, STEM_CHANNELS, keep)
        shared = (IMAGE_SIDE + 2) * IMAGE_BYTES_PER_ROW
        self.launch(f"stem_forward_{_kind(obs)}", (len(obs), 1), shared, obs, conv.forward, conv.bias, y, winner)
        return y, winner

    def stem_weight_gradient(self, obs: Tensor, dy: Tensor, winner: Tensor) -> Tensor:
        """Return dL/dweight `[16, 3, 3, 3]`, then dL/dbias `[16]`, flat, from the gradient of `stem`'s output."""
        parts = min(2 * PARTS, len(obs) * (IMAGE_SIDE // 2 // STEM_BAND))
        partial = obs.new_empty(parts, 28 * STEM_CHANNELS, dtype=torch.float32)
        shared = (2 * STEM_BAND + 3) * IMAGE_BYTES_PER_ROW + 2 * STEM_BAND * (IMAGE_SIDE // 2) * STEM_CHANNELS * 2
        name = f"stem_weight_gradient_{_kind(obs)}"
        self.launch(name, (parts, 1), shared, obs, dy, winner, partial, len(obs))
        return partial.sum(0)

    def pooled(self, x: Tensor, conv: Packed, keep: bool) -> tuple[Tensor, Tensor | None]:
        """Return a max-pooled convolution and, if `keep`, `winner`: the window position (0 to 8) of each maximum."""
        side = x.shape[1]
        images = 32 // side  # per thread block
        y, winner = _pooled(x, len(x), side // 2, conv.channels_out, keep)
        shared = images * _image_bytes(side, conv.channels_in, 1)
        grid = (-(-len(x) // images), 1)
        self.launch(f"pooled_forward_{side}", grid, shared, x, conv.forward, conv.bias, y, winner, len(x))
        return y, winner

    def pooled_gradient(self, dy: Tensor, winner: Tensor, conv: Packed) -> Tensor:
        """Return the gradient of `pooled`'s input, from that of its output."""
        side = 2 * dy.shape[1]
        dx = dy.new_empty(len(dy), side, side, conv.channels_in)
        shared = _image_bytes(side, conv.channels_out, 1)
        self.launch(f"pooled_backward_{side}", (len(dy), 1), shared, dy, winner, conv.backward, dx)
        return dx

    def pooled_weight_gradient(self, x: Tensor, dy: Tensor, winner: Tensor, partial: Tensor) -> None:
        """Write partial sums of dL/dweight `[CO, 3, 3, CI]`, then dL/dbias, to the first columns of `partial`."""
        side, inputs = x.shape[1], x.shape[3]
        shared = _image_bytes(side, inputs, 1) + _image_bytes(side, 16, 0)
        grid = (len(partial), dy.shape[3] // 16)
        name = f"pooled_weight_gradient_{side}"
        self.launch(name, grid, shared, x, dy, winner, partial, partial.stride(0), len(x))

    def block(self, x: Tensor, one: Packed, two: Packed, keep: bool) -> tuple[Tensor, Tensor | None]:
        """Return y = x + conv₂(h) and, if `keep`, h = relu(conv₁(relu(x)))."""
        y, hidden = torch.empty_like(x), torch.empty_like(x) if keep else None
        grid, shared = _block_grid(x)
        arguments = (x, one.forward, one.bias, two.forward, two.bias, hidden, y, len(x))
        self.launch(f"block_forward_{x.shape[1]}", grid, shared, *arguments)
        return y, hidden

    def block_gradient(self, dy: Tensor, x: Tensor, hidden: Tensor, one: Packed, two: Packed) -> tuple[Tensor, Tensor]:
        """Return dx and dh from dy."""
        dx, d_hidden = torch.empty_like(x), torch.empty_like(x)
        grid, shared = _block_grid(x)
        arguments = (dy, one.backward, two.backward, x, hidden, d_hidden, dx, len(x))
        self.launch(f"block_backward_{x.shape[1]}", grid, shared, *arguments)
        return dx, d_hidden

    def block_weight_gradient(self, x: Tensor, d_hidden: Tensor, hidden: Tensor, dy: Tensor, partial: Tensor) -> None:
        """Write partial sums of dL/dweight and dL/dbias of conv₁, then conv₂, to the first columns of `partial`."""
        side, channels = x.shape[1], x.shape[3]
        shared = _images_per_block(side) * (_image_bytes(side, channels, 1) + _image_bytes(side, channels, 0))
        grid = (len(partial), 2)
        arguments = (x, d_hidden, hidden, dy, partial, partial.stride(0), len(x))
        self.launch(f"block_weight_gradient_{side}", grid, shared, *arguments)


def num_parts(batch: int) -> int:
    """Return the number of rows of `partial` for a batch: at most PARTS, and none without images at the last stage."""
    return min(PARTS, -(-batch // _images_per_block(IMAGE_SIDE // 8)))


def _kind(obs: Tensor) -> str:
    return "bytes" if obs.dtype == torch.uint8 else "floats"


def _pooled(like: Tensor, batch: int, side: int, channels: int, keep: bool) -> tuple[Tensor, Tensor | None]:
    y = like.new_empty(batch, side, side, channels)
    return y, torch.empty_like(y, dtype=torch.uint8) if keep else None


def _images_per_block(side: int) -> int:
    """Return how many images a thread block processes at a time."""
    return 4 if side == 8 else 1


def _block_grid(x: Tensor) -> tuple[tuple[int, int], int]:
    """Return grid and bytes of shared memory for a residual block of `x`: two maps with their border."""
    batch, side, _, channels = x.shape
    images = _images_per_block(side)
    return (-(-batch // images), 1), 2 * images * _image_bytes(side, channels, 1)


def _image_bytes(side: int, channels: int, border: int) -> int:
    """Return the bytes of an image in shared memory; rows are padded to a multiple of eight pixels."""
    rows = side + 2 * border
    return rows * -(-rows // 8) * 8 * channels * 2
