"""NormalizedEncoder: normalises vector observations by their running mean and variance (`--normalize-obs`).

The moments cover every observation learnt from so far. They are updated between an update and the next rollout only, so
that acting and learning see the same inputs. They are buffers of the network, so checkpoints contain them.
"""

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn

CLIP = 10.0
EPSILON = 1e-8
MOMENTS = ("mean", "var")


class NormalizedEncoder(nn.Module):
    """An encoder applied to (o − mean) / √(var + ε), clipped at ±10."""

    mean: Tensor
    var: Tensor
    count: Tensor

    def __init__(self, encoder: nn.Module, obs_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.encoder = encoder
        self.encode: Callable[[Tensor], Tensor] = encoder.forward  # fast_networks may replace it
        self.register_buffer("mean", torch.zeros(obs_shape))
        self.register_buffer("var", torch.ones(obs_shape))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))  # number of observations

    def forward(self, obs: Tensor) -> Tensor:
        """Return features `[B, F]` of `obs` `[B, *obs_shape]` float32."""
        return self.encode(((obs - self.mean) * (self.var + EPSILON).rsqrt()).clamp(-CLIP, CLIP))

    @torch.no_grad()
    def update_moments(self, obs: Tensor) -> None:
        """Merge the moments of `obs` `[…, *obs_shape]` into the running ones (Chan et al. 1979)."""
        rows = obs.reshape(-1, *self.mean.shape)
        var, mean = torch.var_mean(rows, dim=0, correction=0)
        total = self.count + len(rows)
        share, difference = len(rows) / total, mean - self.mean
        self.var.copy_(self.var * (1 - share) + var * share + difference.square() * share * (1 - share))
        self.mean.add_(difference * share)
        self.count.copy_(total)

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Initialise the encoder and reset the moments."""
        self.encoder.initialise(generator)  # type: ignore[operator]
        self.mean.zero_()
        self.var.fill_(1)
        self.count.zero_()


def update_moments_in(parts: Iterable[object], obs: Tensor) -> None:
    """Add `obs` to the moments of every NormalizedEncoder in the networks among `parts`."""
    for network in (part for part in parts if isinstance(part, nn.Module)):
        for module in network.modules():
            if isinstance(module, NormalizedEncoder):
                module.update_moments(obs)


def in_half_precision(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return networks' tensors by name in float16, except counts and moments: a variance may exceed its range."""
    return {
        name: tensor.half() if tensor.is_floating_point() and name.rpartition(".")[2] not in MOMENTS else tensor
        for name, tensor in state.items()
    }
