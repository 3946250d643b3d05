"""A GRU that restarts wherever `first` is set, over whole sequences at once.

All columns are cut wherever any of them starts an episode, and the stretches between run one after another. On a GPU
`fast.kernels.gru` restarts each environment by itself, in one launch.
"""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn


class Memory(nn.Module):
    """One GRU layer; `state` is what it remembers, zero where an episode starts."""

    def __init__(self, features: int, size: int) -> None:
        super().__init__()
        self.size = size
        self.gru = nn.GRU(features, size)
        self.scan: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None  # fast_networks may put one here

    def forward(self, x: Tensor, first: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """`x` `[T, N, F]`, `first` `[T, N]`, `state` `[N, S]` → output `[T, N, S]`, state after the last step."""
        if self.scan is not None:
            output = self.scan(x, first, state)
            return output, output[-1]
        start = [0]
        if len(x) > 1:  # a single step, which a graph may hold, asks for no value on the host
            start += (first[1:].any(1).nonzero().squeeze(1) + 1).tolist()
        length = [end - begin for begin, end in pairwise([*start, len(x)])]
        outputs = []
        for begin, stretch in zip(start, x.split(length), strict=True):
            state = state * (~first[begin]).unsqueeze(1)  # [N, S]
            output, last = self.gru(stretch, state.unsqueeze(0))
            state = last[0]
            outputs.append(output)
        return torch.cat(outputs), state

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Orthogonal per stacked matrix, biases 0."""
        for name, parameter in self.gru.named_parameters():
            if name.startswith("weight"):
                nn.init.orthogonal_(parameter, generator=generator)
            else:
                nn.init.zeros_(parameter)
