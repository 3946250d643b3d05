"""A small encoder for small observations: two dense layers over the flattened pixels or the vector."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SmallEncoder(nn.Module):
    """`[B, *obs_shape]` uint8 pixels or float32 numbers → `[B, features]`.

    Pixels are centred, 0..255 → −1..1: without that the layer sees mostly their common brightness and learns slowly
    (minimaze, one seed: 65 % of the training levels solved after 1.5M steps instead of 82 %).
    """

    def __init__(self, obs_shape: tuple[int, ...], features: int, is_pixels: bool) -> None:
        super().__init__()
        self.linear1 = nn.Linear(math.prod(obs_shape), features)
        self.linear2 = nn.Linear(features, features)
        self.is_pixels = is_pixels

    def forward(self, obs: Tensor) -> Tensor:
        x = obs.flatten(1).float()
        if self.is_pixels:
            x = x.mul_(2 / 255).sub_(1)
        return F.relu(self.linear2(F.relu(self.linear1(x))))  # [B, F]

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Orthogonal with gain √2, biases 0."""
        for module in (self.linear1, self.linear2):
            nn.init.orthogonal_(module.weight, gain=math.sqrt(2), generator=generator)
            nn.init.zeros_(module.bias)
