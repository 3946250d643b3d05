"""The convolutions of an IMPALA encoder, forward and backward, by the kernels of cuda/impala.cu.

The same function as `networks.impala`'s stages with bfloat16 activations; the module stays the owner of the weights and
the reference that tests compare with. Activations are `[B, H, W, C]`. For each residual block
y = x + conv₂(h), h = relu(conv₁(relu(x))), its input x and h are kept for the backward pass, in which

    dh = convᵀ₂(dy) · [h > 0]        dx = dy + convᵀ₁(dh) · [x > 0]
"""

from typing import Any

import torch
from torch import Tensor, nn

from expgen.fast.kernels.impala_kernels import ImpalaKernels, Launcher, num_parts
from expgen.fast.kernels.impala_weights import Packed, WeightPacking
from expgen.fast.kernels.prepared import Prepared
from expgen.networks.impala import ImpalaEncoder

Forms = tuple[Packed, ...]  # of all convolutions
CONVS_OF_A_STAGE = 5  # its own and two blocks of two


class FusedTrunk:
    """Callable on pictures `[B, 64, 64, 3]`; gives the last stage's map `[B, 8, 8, 32]`, before its ReLU."""

    def __init__(self, encoder: ImpalaEncoder, launcher: Launcher) -> None:
        self.kernels = ImpalaKernels(launcher)
        self.pack = WeightPacking([conv for conv in encoder.modules() if isinstance(conv, nn.Conv2d)])
        self.packed = Prepared(self.pack)

    def __call__(self, obs: Tensor) -> Tensor:
        obs = obs.contiguous()
        parameters = self.pack.parameters
        if torch.is_grad_enabled() and any(parameter.requires_grad for parameter in parameters):
            return _Trunk.apply(obs, self, *parameters)
        return self.forward(obs, self.packed(), keep=False)[0]

    def forward(self, obs: Tensor, packed: Forms, keep: bool) -> tuple[Tensor, list[Tensor | None]]:
        """The last map, and of every stage what its backward pass needs: winner, x, h, x, h and the stage's output."""
        kept: list[Tensor | None] = []
        x = obs
        for first in range(0, len(packed), CONVS_OF_A_STAGE):
            conv, *blocks = packed[first : first + CONVS_OF_A_STAGE]
            x, winner = (self.kernels.pooled if first else self.kernels.stem)(x, conv, keep)
            kept += [winner]
            for one, two in (blocks[:2], blocks[2:]):
                y, hidden = self.kernels.block(x, one, two, keep)
                kept += [x, hidden]
                x = y
            kept += [x]
        return x, kept

    def backward(self, obs: Tensor, packed: Forms, kept: tuple[Tensor, ...], gradient: Tensor) -> list[Tensor]:
        """The gradients of weight and bias of each convolution, flat and concatenated, from that of the last map."""
        kernels = self.kernels
        sizes = [9 * conv.channels_in * conv.channels_out + conv.channels_out for conv in packed[1:]]
        partial = gradient.new_empty(num_parts(len(obs)), sum(sizes), dtype=torch.float32)
        columns = [partial[:, sum(sizes[:n]) :] for n in range(len(sizes))]  # of each convolution after the first
        for stage in reversed(range(len(packed) // CONVS_OF_A_STAGE)):
            start = CONVS_OF_A_STAGE * stage
            winner, *activations = kept[6 * stage : 6 * stage + 6]
            for block in (1, 0):
                x, hidden = activations[2 * block : 2 * block + 2]
                one = start + 2 * block + 1
                dx, d_hidden = kernels.block_gradient(gradient, x, hidden, packed[one], packed[one + 1])
                kernels.block_weight_gradient(x, d_hidden, hidden, gradient, columns[one - 1])
                gradient = dx
            if stage > 0:
                kernels.pooled_weight_gradient(kept[6 * stage - 1], gradient, winner, columns[start - 1])
                gradient = kernels.pooled_gradient(gradient, winner, packed[start])
        return [kernels.stem_weight_gradient(obs, gradient, kept[0]), *partial.sum(0).split(sizes)]


class _Trunk(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, obs: Tensor, trunk: FusedTrunk, *parameters: Tensor) -> Tensor:
        ctx.trunk, ctx.packed = trunk, trunk.pack()
        y, kept = trunk.forward(obs, ctx.packed, keep=True)
        ctx.save_for_backward(obs, *kept[:-1])
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        obs, *kept = ctx.saved_tensors
        sums = ctx.trunk.backward(obs, ctx.packed, kept, gradient.contiguous())
        gradients: list[Tensor] = []
        for conv, total in zip(ctx.packed, sums, strict=True):
            inputs, outputs = conv.channels_in, conv.channels_out
            gradients += [total[:-outputs].view(outputs, 3, 3, inputs).permute(0, 3, 1, 2), total[-outputs:]]
        return None, None, *gradients
