"""`networks.impala.ImpalaEncoder` with its convolutions done by our kernels and its linear layer in bfloat16."""

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.fast.kernels.impala_trunk import STEM_INPUTS, FusedTrunk
from expgen.networks.impala import ImpalaEncoder


def can_fuse(encoder: nn.Module) -> TypeGuard[ImpalaEncoder]:
    """Whether the kernels compute this encoder: the standard width, three colours, sides that halve three times."""
    if type(encoder) is not ImpalaEncoder:
        return False
    rows, columns, colours = encoder.obs_shape
    return encoder.width == 1 and colours == STEM_INPUTS and rows % 8 == 0 and columns % 8 == 0


class FusedImpala:
    """`[B, H, W, 3]` uint8 → `[B, features]` float32; the weights are the encoder's."""

    def __init__(self, encoder: ImpalaEncoder, dtype: torch.dtype = torch.bfloat16) -> None:
        self.trunk = FusedTrunk(encoder, dtype)
        self.linear, self.is_pooled, self.dtype = encoder.linear, encoder.is_pooled, dtype

    def __call__(self, obs: Tensor) -> Tensor:
        x = F.relu(self.trunk(obs))  # [B, h, w, C]
        weight = self.linear.weight.to(self.dtype)
        if self.is_pooled:
            x = x.mean((1, 2))
        else:
            rows, columns, channels = x.shape[1:]
            weight = weight.view(-1, channels, rows, columns).permute(0, 2, 3, 1).flatten(1)  # as the map is stored
            x = x.flatten(1)
        return F.relu(F.linear(x, weight, self.linear.bias.to(self.dtype))).float()  # [B, F]
