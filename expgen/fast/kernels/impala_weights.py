"""Order the weights of an IMPALA encoder's convolutions as the lanes of a warp read them (cuda/impala.cu).

A matrix product has 16 inputs and 8 outputs of one of the nine taps; lane l of 32 holds, for output l // 4, the inputs
i, i + 1, i + 8 and i + 9 with i = 2 (l % 4). Outputs are assigned to products so that a lane's results are neighbouring
channels.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

STEM_INPUTS = 3  # colour channels
LANES = 32


class Packed(NamedTuple):
    """A convolution's weights as the kernels read them."""

    forward: Tensor
    backward: Tensor  # flipped and transposed, for the input's gradient; empty for the first convolution
    bias: Tensor  # float32
    channels_in: int
    channels_out: int


class WeightPacking:
    """Packs all convolutions of a trunk in one gather of their concatenated parameters."""

    def __init__(self, convs: list[nn.Conv2d], dtype: torch.dtype = torch.bfloat16) -> None:
        self.convs, self.dtype = convs, dtype
        self.parameters = [parameter for conv in convs for parameter in conv.parameters()]  # weight, bias, …
        device = self.parameters[0].device
        self.zero = torch.zeros(1, device=device)
        zero = sum(parameter.numel() for parameter in self.parameters)
        pieces: list[Tensor] = []
        offset = 0
        for number, conv in enumerate(convs):
            out, inputs = conv.out_channels, conv.in_channels
            index = offset + torch.arange(conv.weight.numel()).view(out, 3, 3, inputs)
            index = index.permute(1, 2, 3, 0)  # ky, kx, in, out
            if inputs == STEM_INPUTS:
                pieces += [_stem_order(index, zero), index.new_empty(0)]
            else:
                together = 16 if number % 5 == 0 else out  # a pooled convolution computes 16 outputs at a time
                pieces += [lane_order(index, together), lane_order(index.flip(0, 1).transpose(2, 3), inputs)]
            offset += conv.weight.numel() + out
        self.index, self.sizes = torch.cat(pieces).to(device), [len(piece) for piece in pieces]

    def __call__(self) -> tuple[Packed, ...]:
        """Return the current weights of every convolution."""
        flat = torch.cat([*(_in_memory_order(parameter) for parameter in self.parameters), self.zero])
        pieces = flat.index_select(0, self.index).to(self.dtype).split(self.sizes)
        return tuple(
            Packed(pieces[2 * n], pieces[2 * n + 1], conv.bias.detach(), conv.in_channels, conv.out_channels)  # type: ignore[union-attr]
            for n, conv in enumerate(self.convs)
        )


def lane_order(weight: Tensor, together: int) -> Tensor:
    """Reorder `[ky, kx, inputs, outputs]` to flat `[kx, inputs/16, ky, outputs/16, lane, 2 products, 2 halves, 2]`.

    together: how many outputs a warp computes at a time; a lane has `together / 4` neighbouring ones.
    """
    rows, columns, inputs, outputs = weight.shape
    products = together // 8
    split = weight.view(rows, columns, inputs // 16, 2, 4, 2, outputs // together, 4, products, 2)
    # ky, kx, k, half, input pair of the lane, of the pair | group, quarter, product, of the quarter's pair
    split = split.permute(1, 2, 0, 6, 8, 7, 9, 4, 3, 5)  # kx, k, ky, group, product, output's quarter and number, …
    split = split.reshape(columns, inputs // 16, rows, outputs // 16, 2, LANES, 2, 2)  # …, 2 products, lane, half, pair
    return split.transpose(4, 5).flatten()


def _stem_order(weight: Tensor, zero: int) -> Tensor:
    """Return the first convolution's order: inputs are four pixels of four colours, the last of each with weight 0."""
    padded = torch.full((3, 1, 4, 4, weight.shape[3]), zero)  # ky, 1, pixel, colour, output
    padded[:, 0, :3, :3] = weight
    return lane_order(padded.flatten(2, 3), 16)


def _in_memory_order(parameter: Tensor) -> Tensor:
    """Return `parameter` flat; a convolution's weight as `[CO, 3, 3, CI]`, the order of channels-last modules."""
    return (parameter.permute(0, 2, 3, 1) if parameter.dim() == 4 else parameter).reshape(-1)
