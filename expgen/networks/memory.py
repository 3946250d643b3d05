"""Memory: a GRU over sequences whose state is reset wherever an episode starts (`first`).

The sequences are split at every step where any environment starts an episode, and the segments run one after another.
On a GPU `fast.kernels.gru` resets each environment separately, in one kernel launch.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn


class Memory(nn.Module):
    """One GRU layer; `state` is its hidden state, zero at the start of an episode."""

    def __init__(self, features: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.gru = nn.GRU(features, size)
        self.scan: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None  # set by fast_networks

    def forward(self, x: Tensor, first: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs `[T, N, S]` for `x` `[T, N, F]`, `first` `[T, N]` and `state` `[N, S]`, and the last state."""
        if self.scan is not None:
            output = self.scan(x, first, state)
            return output, output[-1]
        start = [0]
        if len(x) > 1:  # a single step reads no value on the host, so a CUDA graph can contain it
            start += (first[1:].any(1).nonzero().squeeze(1) + 1).tolist()
        length = [end - begin for begin, end in pairwise([*start, len(x)])]
        outputs = []
        for begin, segment in zip(start, x.split(length), strict=True):
            state = state * (~first[begin]).unsqueeze(1)  # [N, S]
            output, last = self.gru(segment, state.unsqueeze(0))
            state = last[0]
            outputs.append(output)
        return torch.cat(outputs), state

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw each stacked weight matrix orthogonal; biases are 0."""
        for name, parameter in self.gru.named_parameters():
            if name.startswith("weight"):
                nn.init.orthogonal_(parameter, generator=generator)
            else:
                nn.init.zeros_(parameter)
