"""`networks.impala.ImpalaEncoder` with its convolutions done by our kernels and its linear layer in bfloat16."""

from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.kernels.impala_trunk import STEM_INPUTS, FusedTrunk
from expgen.networks.impala import STAGE_CHANNELS, ImpalaEncoder


def can_fuse(encoder: nn.Module) -> TypeGuard[ImpalaEncoder]:
    """Whether the kernels compute this encoder: the standard widths, three colours, sides that halve three times."""
    if type(encoder) is not ImpalaEncoder:
        return False
    height, width, colours = encoder.obs_shape
    channels = tuple(stage.conv.out_channels for stage in encoder.stages)  # type: ignore[union-attr]
    return channels == STAGE_CHANNELS and colours == STEM_INPUTS and height % 8 == 0 and width % 8 == 0


class FusedImpala:
    """`[B, H, W, 3]` uint8 → `[B, features]` float32; the weights are the encoder's."""

    def __init__(self, encoder: ImpalaEncoder, dtype: torch.dtype = torch.bfloat16) -> None:
        self.trunk = FusedTrunk(encoder, dtype)
        self.linear, self.dtype = encoder.linear, dtype

    def __call__(self, obs: Tensor) -> Tensor:
        x = F.relu(self.trunk(obs))  # [B, h, w, C]
        height, width, channels = x.shape[1:]
        weight = self.linear.weight.view(-1, channels, height, width).permute(0, 2, 3, 1)  # as the map is stored
        weight = weight.to(self.dtype).flatten(1)
        return F.relu(F.linear(x.flatten(1), weight, self.linear.bias.to(self.dtype))).float()  # [B, F]
