"""Vectors brought to mean 0 and variance 1 before an encoder sees them (`--normalize-obs`).

The moments are those of every observation learnt from so far. They change between an update and the next rollout, never
within: what was acted on is what is learnt from. They are buffers of the network, so that checkpoints hold them and
whatever plays it uses them.
"""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

CLIP = 10.0
EPSILON = 1e-8


class NormalizedEncoder(nn.Module):
    """An encoder of (o − mean) / √(var + ε), clipped at ±10."""

    mean: Tensor
    var: Tensor
    count: Tensor

    def __init__(self, encoder: nn.Module, obs_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = encoder
        self.encode: Callable[[Tensor], Tensor] = encoder.forward  # fast_networks may put a faster one here
        self.register_buffer("mean", torch.zeros(obs_shape))
        self.register_buffer("var", torch.ones(obs_shape))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))  # observations behind them

    def forward(self, obs: Tensor) -> Tensor:
        """`obs` `[B, *obs_shape]` float32 → `[B, F]`."""
        return self.encode(((obs - self.mean) * (self.var + EPSILON).rsqrt()).clamp(-CLIP, CLIP))

    @torch.no_grad()
    def update_moments(self, obs: Tensor) -> None:
        """Merge the moments of `obs` `[…, *obs_shape]` into those so far (Chan et al. 1979)."""
        rows = obs.reshape(-1, *self.mean.shape)
        var, mean = torch.var_mean(rows, dim=0, correction=0)
        total = self.count + len(rows)
        share, apart = len(rows) / total, mean - self.mean
        self.var.copy_(self.var * (1 - share) + var * share + apart.square() * share * (1 - share))
        self.mean.add_(apart * share)
        self.count.copy_(total)

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Initialise the encoder and reset the moments."""
        self.encoder.initialise(generator)  # type: ignore[operator]
        self.mean.zero_()
        self.var.fill_(1)
        self.count.zero_()


def update_moments_in(parts: Iterable[object], obs: Tensor) -> None:
    """Add `obs` to the moments of every normalised encoder of the networks among `parts`."""
    for network in (part for part in parts if isinstance(part, nn.Module)):
        for module in network.modules():
            if isinstance(module, NormalizedEncoder):
                module.update_moments(obs)
