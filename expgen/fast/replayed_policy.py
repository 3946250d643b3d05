"""ReplayedPolicy: a frozen policy on a GPU whose forward is one launch, for agents that play.

How many environments ask changes from step to step (members vote only where nobody explores), and a graph has fixed
shapes: questions are padded to the next power of two, so that a few recordings serve them all.
"""

import torch
from torch import Tensor, nn

from expgen.fast.graphs import Capture, Recording, capture_on_gpu
from expgen.networks.actor_critic import Policy, PolicyOutput

SMALLEST = 32  # observations of the smallest recording: fewer are hardly faster


class ReplayedPolicy(nn.Module):
    """Called like the policy it holds, with one step at a time; its weights must not move."""

    def __init__(self, policy: Policy, capture: Capture = capture_on_gpu) -> None:
        super().__init__()
        self.policy, self.capture = policy, capture
        self.recordings: dict[int, Recording] = {}

    @property
    def state_size(self) -> int:
        return self.policy.state_size

    @torch.no_grad()
    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """`obs` `[1, n, …]`, `first` `[1, n]`, `state` `[n, S]` → what the policy says of them."""
        count = first.shape[1]
        size = max(SMALLEST, 1 << (count - 1).bit_length())
        inputs = (padded(obs, 1, size), padded(first, 1, size), padded(state, 0, size))
        if size not in self.recordings:
            self.recordings[size] = Recording(self.policy, inputs, self.capture)
        logits, value, after = self.recordings[size](inputs)
        return PolicyOutput(logits[:, :count], value[:, :count], after[:count])


def padded(tensor: Tensor, dimension: int, size: int) -> Tensor:
    """`tensor` with zeros after its end, `size` long."""
    if tensor.shape[dimension] == size:
        return tensor
    shape = list(tensor.shape)
    shape[dimension] = size
    longer = tensor.new_zeros(shape)
    longer.narrow(dimension, 0, tensor.shape[dimension]).copy_(tensor)
    return longer
