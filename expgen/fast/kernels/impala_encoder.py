"""`networks.impala.ImpalaEncoder` with its convolutions done by our kernels and its linear layer in bfloat16."""

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.fast.kernels.cuda_module import cuda_module, has_compiler, largest_shared_memory
from expgen.fast.kernels.impala_kernels import IMAGE_SIDE, MOST_SHARED, Launcher
from expgen.fast.kernels.impala_trunk import FusedTrunk
from expgen.fast.kernels.impala_weights import STEM_INPUTS
from expgen.networks.impala import ImpalaEncoder


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
        self.linear, self.is_pooled = encoder.linear, encoder.is_pooled

    def __call__(self, obs: Tensor) -> Tensor:
        x = F.relu(self.trunk(obs))  # [B, h, w, C]
        weight = self.linear.weight.to(x.dtype)
        if self.is_pooled:
            x = x.mean((1, 2))
        else:
            rows, columns, channels = x.shape[1:]
            weight = weight.view(-1, channels, rows, columns).permute(0, 2, 3, 1).flatten(1)  # as the map is stored
            x = x.flatten(1)
        return F.relu(F.linear(x, weight, self.linear.bias.to(x.dtype))).float()  # [B, F]
