"""IMPALA made wider, and Impoola: averaging over positions in place of flattening (Trumpp et al., RLC 2025).

Beside `ImpalaEncoder`, which stays exactly the paper's and is what fast paths are written for.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.networks.impala import STAGE_CHANNELS, Stage


class WideImpala(nn.Module):
    """`[B, H, W, C]` uint8 → `[B, features]` float32, with `width` times IMPALA's channels in every stage.

    Flattened, the linear layer reads 32·w·8·8 numbers of a 64 × 64 picture; pooled, it reads 32·w means over
    positions, so that what was seen counts and where it was seen does not.
    """

    def __init__(self, obs_shape: tuple[int, ...], features: int, width: int, is_pooled: bool) -> None:
        super().__init__()
        height, image_width, channels = obs_shape
        sizes = (channels, *(width * size for size in STAGE_CHANNELS))
        self.stages = nn.ModuleList(Stage(*pair) for pair in pairwise(sizes))
        for _ in STAGE_CHANNELS:
            height, image_width = (height + 1) // 2, (image_width + 1) // 2
        self.linear = nn.Linear(sizes[-1] * (1 if is_pooled else height * image_width), features)
        self.is_pooled = is_pooled
        self.is_bfloat16 = False  # set by training.accelerate where the device gains from it

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
        """As IMPALA: Xavier uniform with gain 1 everywhere, biases 0."""
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.xavier_uniform_(module.weight, generator=generator)
                module.bias.zero_()  # type: ignore[union-attr]
