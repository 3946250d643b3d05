"""DeepEncoder: an encoder with extra dense layers (LEEP's members have two)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.networks.small import orthogonal


class DeepEncoder(nn.Module):
    """An encoder followed by `num_layers` linear layers `[F, F]`, each with a ReLU."""

    def __init__(self, encoder: nn.Module, features: int, num_layers: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.encode: Callable[[Tensor], Tensor] = encoder.forward  # fast_networks may replace it
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(num_layers))

    def forward(self, obs: Tensor) -> Tensor:
        x = self.encode(obs)
        for layer in self.layers:
            x = F.relu(layer(x))
        return x  # [B, F]

    def initialise(self, generator: torch.Generator) -> None:
        """Initialise the encoder; the layers are orthogonal with gain 1, biases are 0."""
        self.encoder.initialise(generator)  # type: ignore[operator]
        orthogonal(self.layers, 1.0, generator)
