"""The IMPALA convolutional encoder (Espeholt et al. 2018) and its variant Impoola (Trumpp et al., RLC 2025).

Three stages of conv 3×3 → max-pool 3×3 stride 2 → two residual blocks, then ReLU, linear, ReLU. `width` multiplies the
channels of every stage. Impoola averages over positions instead of flattening: its linear layer reads 32·w means, not
32·w·8·8 numbers, so features depend less on where something is seen.

Environments write pixels as height × width × channel. Permuted to channels first, this is PyTorch's channels-last
memory format, in which convolutions are fastest; nothing is copied.
"""

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Precision = Literal["auto", "float32", "bfloat16"]
STAGE_CHANNELS = (16, 32, 32)


class ResidualBlock(nn.Module):
    """y = x + conv₂(relu(conv₁(relu(x)))): pre-activation, skip taken before the ReLU."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv2(F.relu_(self.conv1(F.relu(x)))).add_(x)


class Stage(nn.Module):
    """Convolution, max-pooling to half the size, two residual blocks."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)
        self.block1 = ResidualBlock(channels_out)
        self.block2 = ResidualBlock(channels_out)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.conv(x), 3, stride=2, padding=1)
        return self.block2(self.block1(x))


class ImpalaEncoder(nn.Module):
    """`[B, H, W, C]` uint8 → `[B, features]` float32."""

    def __init__(self, obs_shape: tuple[int, ...], features: int, width: int = 1, is_pooled: bool = False) -> None:
        super().__init__()
        self.obs_shape, self.width, self.is_pooled = obs_shape, width, is_pooled
        rows, columns, colours = obs_shape
        sizes = (colours, *(width * channels for channels in STAGE_CHANNELS))
        self.stages = nn.ModuleList(Stage(*pair) for pair in pairwise(sizes))
        for _ in STAGE_CHANNELS:
            rows, columns = (rows + 1) // 2, (columns + 1) // 2
        self.linear = nn.Linear(sizes[-1] * (1 if is_pooled else rows * columns), features)
        self.is_bfloat16 = False  # set by fast_networks

    def forward(self, obs: Tensor) -> Tensor:
        with torch.autocast(obs.device.type, torch.bfloat16, self.is_bfloat16, cache_enabled=False):
            x = obs.permute(0, 3, 1, 2)  # [B, C, H, W], channels last in memory
            x = x.to(torch.bfloat16 if self.is_bfloat16 else torch.float32) / 255
            for stage in self.stages:
                x = stage(x)
            x = F.relu(x)
            x = x.mean((2, 3)) if self.is_pooled else x.flatten(1)
            return F.relu(self.linear(x)).float()  # [B, F]

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw all weights Xavier-uniform with gain 1; biases are 0."""
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.xavier_uniform_(module.weight, generator=generator)
                module.bias.zero_()  # type: ignore[union-attr]
