"""`networks.impala.ImpalaEncoder` with the kernels of cuda/impala.cu, forward and backward, in bfloat16.

The module keeps the weights, and tests compare with its forward. Activations are `[B, H, W, C]` in bfloat16. For each
residual block y = x + conv₂(h), h = relu(conv₁(relu(x))), x and h are kept for the backward pass:

    dh = convᵀ₂(dy) · [h > 0]        dx = dy + convᵀ₁(dh) · [x > 0]
"""

from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.fast.kernels.cuda_module import cuda_module, has_compiler, max_shared_memory
from expgen.fast.kernels.impala_kernels import IMAGE_SIDE, MAX_SHARED, ImpalaKernels, Launcher, num_parts
from expgen.fast.kernels.impala_weights import STEM_INPUTS, Packed, WeightPacking
from expgen.fast.kernels.prepared import Prepared
from expgen.networks.impala import ImpalaEncoder

Forms = tuple[Packed, ...]  # one per convolution
CONVS_PER_STAGE = 5  # the pooled one, and two residual blocks of two
LAST_SIDE, LAST_CHANNELS = IMAGE_SIDE // 8, 32  # of the last stage's output


def can_fuse(encoder: nn.Module) -> TypeGuard[ImpalaEncoder]:
    """Return whether the kernels support this encoder: standard width, images of ProcGen's shape."""
    return (
        type(encoder) is ImpalaEncoder
        and encoder.width == 1
        and encoder.obs_shape == (IMAGE_SIDE, IMAGE_SIDE, STEM_INPUTS)
    )


def is_supported_gpu(device: torch.device) -> bool:
    """Return whether `device` has bfloat16 tensor cores, enough shared memory and NVRTC, as the kernels require."""
    if device.type != "cuda" or not has_compiler() or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    return max_shared_memory(device) >= MAX_SHARED


class FusedImpala:
    """The encoder with fast kernels: `[B, 64, 64, 3]` uint8 → `[B, features]` float32."""

    def __init__(self, encoder: ImpalaEncoder, launcher: Launcher | None = None) -> None:
        """`launcher` runs the kernels; by default on the encoder's GPU."""
        self.trunk = FusedTrunk(encoder, launcher or cuda_module(encoder.linear.weight.device))
        self.encoder = encoder
        self.linear = Prepared(self._linear)
        self.prepared = (self.trunk.packed, self.linear)

    def __call__(self, obs: Tensor) -> Tensor:
        x = F.relu(self.trunk(obs))  # [B, h, w, C]
        x = x.mean((1, 2)) if self.encoder.is_pooled else x.flatten(1)
        return F.relu(F.linear(x, *self.linear())).float()  # [B, F]

    def _linear(self) -> tuple[Tensor, Tensor]:
        """Return weight and bias of the linear layer in bfloat16, its inputs in the order of the stored map."""
        linear = self.encoder.linear
        weight = linear.weight.to(torch.bfloat16)
        if not self.encoder.is_pooled:
            weight = weight.view(-1, LAST_CHANNELS, LAST_SIDE, LAST_SIDE).permute(0, 2, 3, 1).flatten(1)
        return weight, linear.bias.to(torch.bfloat16)


class FusedTrunk:
    """The convolutions: images `[B, 64, 64, 3]` → the last stage's map `[B, 8, 8, 32]`, before its ReLU."""

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
        """Return the last map and, for each stage, winner, x, h, x, h and output, which the backward pass needs."""
        kept: list[Tensor | None] = []
        x = obs
        for first in range(0, len(packed), CONVS_PER_STAGE):
            conv, *blocks = packed[first : first + CONVS_PER_STAGE]
            x, winner = (self.kernels.pooled if first else self.kernels.stem)(x, conv, keep)
            kept += [winner]
            for one, two in (blocks[:2], blocks[2:]):
                y, hidden = self.kernels.block(x, one, two, keep)
                kept += [x, hidden]
                x = y
            kept += [x]
        return x, kept

    def backward(self, obs: Tensor, packed: Forms, kept: tuple[Tensor, ...], gradient: Tensor) -> list[Tensor]:
        """Return the gradients of each convolution's weight and bias, flat and concatenated, from the last map's."""
        kernels = self.kernels
        sizes = [9 * conv.channels_in * conv.channels_out + conv.channels_out for conv in packed[1:]]
        partial = gradient.new_empty(num_parts(len(obs)), sum(sizes), dtype=torch.float32)
        columns = [partial[:, sum(sizes[:n]) :] for n in range(len(sizes))]  # for each convolution after the first
        for stage in reversed(range(len(packed) // CONVS_PER_STAGE)):
            start = CONVS_PER_STAGE * stage
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
