"""Networks on a GPU: in bf16, by our own kernels where they fit, compiled elsewhere; and how a frozen one plays.

The weights stay where they are, in float32; what is replaced is the way from pictures to features.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.fast.graphs import Capture, Recording, capture_on_gpu
from expgen.fast.kernels.gru import fused_gru
from expgen.fast.kernels.impala_encoder import FusedImpala, can_fuse, has_fitting_gpu
from expgen.networks.actor_critic import Policy, PolicyOutput, policies_in
from expgen.networks.memory import Memory
from expgen.networks.plain_copy import has_seam, plain_copy
from expgen.networks.remembered import RememberedFrames

SMALLEST = 32  # observations of the smallest recording of a policy for play: fewer are hardly faster
SHAPES_OF_AN_ENCODER = 8  # batches it is compiled for at most: acting, minibatches and values, each of two sizes


def for_play(policy: Policy) -> Policy:
    """A frozen copy, as fast as its device plays it; on a GPU it computes as it acted in training.

    Nothing of `policy` is touched. The copy must not be trained: what makes it fast relies on weights that stay.
    Without convolutions it is a plain one: there is little to gain.
    """
    frozen = plain_copy(policy).requires_grad_(False)
    if not any(isinstance(part, nn.Conv2d) for part in frozen.modules()):
        return frozen
    if next(frozen.parameters()).device.type == "cpu":
        for part in policies_in(frozen):
            part.encode = RememberedFrames(part.encoder)
        return frozen
    accelerate_networks(frozen, may_compile=False)
    replayed: Any = ReplayedPolicy(frozen)  # is called like one
    return replayed if is_capturable(frozen) else frozen


def recorded_forward(policy: Policy, asked: tuple[Tensor, Tensor, Tensor]) -> Callable[[], object]:
    """A function that runs `policy` on the inputs `asked`, as acting does on their device."""
    if asked[0].is_cuda:
        accelerate_networks(policy)
        with torch.no_grad():
            return Recording(policy, asked, capture_on_gpu).replay
    return lambda: policy(*asked)


def accelerate_networks(network: nn.Module, may_compile: bool = True) -> None:
    """bf16 for convolutions and memory, by our own kernels or compiled; losses and optimiser state stay float32."""
    parts: list[Any] = list(network.modules())
    for part in parts:
        if isinstance(part, Memory):
            part.scan = fused_gru(part.gru)
        if has_seam(part):
            part.encode = fast_encode(part.encoder, may_compile)


def fast_encode(encoder: Any, may_compile: bool = True) -> Callable[[Tensor], Tensor]:
    """The encoder's forward, as fast as we have it; compiling takes seconds for every shape."""
    if can_fuse(encoder) and has_fitting_gpu(encoder.linear.weight.device):
        return FusedImpala(encoder)
    if hasattr(encoder, "is_bfloat16"):
        encoder.is_bfloat16 = True
        if may_compile:
            make_room_to_compile()
            return torch.compile(encoder.forward, dynamic=False)
    return encoder.forward


def make_room_to_compile() -> None:
    """Raise torch.compile's cache limits for one more encoder; beyond them encoders run uncompiled."""
    config = torch._dynamo.config
    config.cache_size_limit += SHAPES_OF_AN_ENCODER
    config.accumulated_cache_size_limit = max(config.accumulated_cache_size_limit, config.cache_size_limit)


def is_capturable(policy: nn.Module) -> bool:
    """Whether a gradient step can be captured: the library's GRU cannot, our kernels can."""
    return all(part.scan is not None for part in policy.modules() if isinstance(part, Memory))


class ReplayedPolicy(nn.Module):
    """Called like the frozen policy it holds, with one step at a time, which is one launch.

    How many environments ask changes from step to step (members vote only where nobody explores), and a graph has fixed
    shapes: inputs are padded to the next power of two, so that a few recordings serve them all.
    """

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
    missing = size - tensor.shape[dimension]
    last_first = [0, 0] * (tensor.dim() - 1 - dimension)  # F.pad begins with the last dimension
    return F.pad(tensor, [*last_first, 0, missing]) if missing else tensor
