"""`networks.impala.ImpalaEncoder` with its convolutions done by our kernels and its linear layer in bfloat16."""

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.fast.kernels.cuda_module import cuda_module, has_compiler, largest_shared_memory
from expgen.fast.kernels.impala_kernels import IMAGE_SIDE, MOST_SHARED, Launcher
from expgen.fast.kernels.impala_trunk import FusedTrunk
from expgen.fast.kernels.impala_weights import STEM_INPUTS
from expgen.fast.kernels.prepared import Prepared
from expgen.networks.impala import ImpalaEncoder

LAST_SIDE, LAST_CHANNELS = IMAGE_SIDE // 8, 32  # of the map that the last stage makes


def can_fuse(encoder: nn.Module) -> TypeGuard[ImpalaEncoder]:
    """Whether the kernels compute this encoder: the standard width and ProcGen's pictures."""
    return (
        type(encoder) is ImpalaEncoder
        and encoder.width == 1
        and encoder.obs_shape == (IMAGE_SIDE, IMAGE_SIDE, STEM_INPUTS)
    )


def has_fitting_gpu(device: torch.device) -> bool:
    """Whether the kernels run on `device`: bfloat16 tensor cores, enough shared memory, and NVRTC to compile for it."""
    if device.type != "cuda" or not has_compiler() or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    return largest_shared_memory(device) >= MOST_SHARED


class FusedImpala:
    """`[B, 64, 64, 3]` uint8 → `[B, features]` float32; the weights are the encoder's."""

    def __init__(self, encoder: ImpalaEncoder, launcher: Launcher | None = None) -> None:
        """`launcher`: what runs the kernels; by default the encoder's GPU."""
        self.trunk = FusedTrunk(encoder, launcher or cuda_module(encoder.linear.weight.device))
        self.encoder = encoder
        self.linear = Prepared(self._linear)
        self.prepared = (self.trunk.packed, self.linear)

    def __call__(self, obs: Tensor) -> Tensor:
        x = F.relu(self.trunk(obs))  # [B, h, w, C]
        x = x.mean((1, 2)) if self.encoder.is_pooled else x.flatten(1)
        return F.relu(F.linear(x, *self.linear())).float()  # [B, F]

    def _linear(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the last layer in bfloat16, its inputs in the order in which maps are stored."""
        linear = self.encoder.linear
        weight = linear.weight.to(torch.bfloat16)
        if not self.encoder.is_pooled:
            weight = weight.view(-1, LAST_CHANNELS, LAST_SIDE, LAST_SIDE).permute(0, 2, 3, 1).flatten(1)
        return weight, linear.bias.to(torch.bfloat16)
