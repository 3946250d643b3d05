"""The convolutions of an IMPALA encoder, forward and backward, by the kernels beside this file.

The same function as `networks.impala`'s stages with bfloat16 activations; the module stays the owner of the weights and
the reference that tests compare with. Activations are `[B, H, W, C]`. For each residual block
y = x + conv₂(h), h = relu(conv₁(relu(x))), its input x and h are kept for the backward pass, in which

    dh = convᵀ₂(dy) · [h > 0]        dx = dy + convᵀ₁(dh) · [x > 0]
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from expgen.fast.kernels.conv3x3 import conv3x3, weight_gradient
from expgen.fast.kernels.pool import max_pool, max_pool_gradient
from expgen.fast.kernels.stem import ROW, VIEW, WINDOW, stem, stem_weight_gradient
from expgen.networks.impala import ImpalaEncoder

STEM_INPUTS = 3  # colours


class Packed(NamedTuple):
    """A convolution's weights as the kernels read them, `[9, CI, CO]`, and turned round for its input's gradient."""

    forward: Tensor
    backward: Tensor
    bias: Tensor  # float32
    channels_in: int
    channels_out: int


class FusedTrunk:
    """Callable on bytes `[B, H, W, 3]`; gives the last stage's map `[B, H/8, W/8, C]`, before its ReLU."""

    def __init__(self, encoder: ImpalaEncoder, dtype: torch.dtype = torch.bfloat16) -> None:
        self.dtype = dtype
        self.convs = [conv for conv in encoder.modules() if isinstance(conv, nn.Conv2d)]
        self.parameters = [parameter for conv in self.convs for parameter in conv.parameters()]  # weight, bias, …
        device = self.parameters[0].device
        self.zero = torch.zeros(1, device=device)
        self.index, self.sizes = self._packing()
        self.index = self.index.to(device)

    def __call__(self, obs: Tensor) -> Tensor:
        return _Trunk.apply(obs, self, *self.parameters)

    def _packing(self) -> tuple[Tensor, list[int]]:
        """Where in the concatenated parameters each number of the packed weights comes from."""
        pieces = []
        zero = sum(parameter.numel() for parameter in self.parameters)
        offset = 0
        for conv in self.convs:
            out, inputs = conv.out_channels, conv.in_channels
            place = torch.arange(conv.weight.numel()).view(out, 3, 3, inputs) + offset
            if inputs == STEM_INPUTS:
                expanded = torch.full((WINDOW, VIEW, ROW, out), zero)
                for wx in range(WINDOW):
                    expanded[wx, :3, 3 * wx : 3 * wx + 9] = place.permute(1, 2, 3, 0).reshape(3, 9, out)
                pieces += [expanded.flatten(), place.new_empty(0)]
            else:
                pieces += [place.permute(1, 2, 3, 0).flatten(), place.flip(1, 2).permute(1, 2, 0, 3).flatten()]
            offset += conv.weight.numel() + out
        return torch.cat(pieces), [len(piece) for piece in pieces]

    def pack(self) -> list[Packed]:
        """The weights of every convolution as they are now."""
        flat = torch.cat([*(_in_memory_order(parameter) for parameter in self.parameters), self.zero])
        pieces = flat.index_select(0, self.index).to(self.dtype).split(self.sizes)
        return [
            Packed(pieces[2 * n], pieces[2 * n + 1], conv.bias.detach(), conv.in_channels, conv.out_channels)  # type: ignore[union-attr]
            for n, conv in enumerate(self.convs)
        ]


class _Trunk(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, obs: Tensor, trunk: FusedTrunk, *parameters: Tensor) -> Tensor:
        packed = trunk.pack()
        kept: list[Tensor] = [obs]
        x = obs
        for first in range(0, len(packed), 5):  # a stage: its convolution and two blocks of two
            conv = packed[first]
            if first == 0:
                x, winner = stem(obs, conv.forward, conv.bias, conv.channels_out)
            else:
                x, winner = max_pool(conv3x3(x, conv.forward, conv.channels_out, conv.bias))
            kept += [winner]
            for one, two in (packed[first + 1 : first + 3], packed[first + 3 : first + 5]):
                hidden = conv3x3(x, one.forward, one.channels_out, one.bias, relu_in=True, relu_out=True)
                kept += [x, hidden]
                x = conv3x3(hidden, two.forward, two.channels_out, two.bias, skip=x)
            kept += [x]
        ctx.packed = packed
        ctx.save_for_backward(*kept)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        packed: list[Packed] = ctx.packed
        obs, *kept = ctx.saved_tensors
        sums: list[Tensor] = []  # of the convolutions from the last to the first
        dx = gradient.contiguous()
        for stage in reversed(range(len(packed) // 5)):
            winner, *activations = kept[6 * stage : 6 * stage + 6]
            for block in (1, 0):
                x, hidden = activations[2 * block : 2 * block + 2]
                one, two = packed[5 * stage + 2 * block + 1 : 5 * stage + 2 * block + 3]
                sums.append(weight_gradient(hidden, dx))
                dh = conv3x3(dx, two.backward, two.channels_in, mask=hidden)
                sums.append(weight_gradient(x, dh, relu_in=True))
                dx = conv3x3(dh, one.backward, one.channels_in, mask=x, skip=dx)
            if stage == 0:
                sums.append(stem_weight_gradient(obs, dx, winner))
            else:
                conv, before = packed[5 * stage], kept[6 * stage - 1]
                dy = max_pool_gradient(dx, winner)
                sums.append(weight_gradient(before, dy))
                dx = conv3x3(dy, conv.backward, conv.channels_in)
        gradients: list[Tensor] = []
        for conv, total in zip(packed, reversed(sums), strict=True):
            gradients += _gradients(conv, total)
        return None, None, *gradients


def _gradients(conv: Packed, total: Tensor) -> tuple[Tensor, Tensor]:
    """A kernel's flat sums as gradients of the weight `[CO, CI, 3, 3]` and of the bias."""
    out = conv.channels_out
    if conv.channels_in == STEM_INPUTS:
        expanded = total[:-out].view(WINDOW, VIEW, ROW, out)
        weight = sum(expanded[wx, :3, 3 * wx : 3 * wx + 9] for wx in range(WINDOW))
        return weight.view(3, 3, 3, out).permute(3, 2, 0, 1), total[-out:]  # type: ignore[union-attr]
    return total[:-out].view(out, 3, 3, conv.channels_in).permute(0, 3, 1, 2), total[-out:]


def _in_memory_order(parameter: Tensor) -> Tensor:
    """Flat; a convolution's weight as `[CO, 3, 3, CI]`, which is how channels-last modules store it."""
    return (parameter.permute(0, 2, 3, 1) if parameter.dim() == 4 else parameter).reshape(-1)
