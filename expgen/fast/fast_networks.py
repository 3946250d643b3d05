"""Fast networks: on a GPU bf16 encoders and GRUs by our own kernels or torch.compile; fast copies for inference.

The float32 weights stay in their modules; only the forward functions of encoders and GRUs are replaced.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from expgen.errors import InputError
from expgen.fast.graphs import Capture, RecordedFunction, capture_on_gpu
from expgen.fast.kernels.gru import fused_gru
from expgen.fast.kernels.impala_encoder import FusedImpala, can_fuse, is_supported_gpu
from expgen.fast.threaded_encoder import ThreadedEncoder
from expgen.networks.actor_critic import Policy, PolicyOutput, policies_in
from expgen.networks.cached_encoder import CachedEncoder
from expgen.networks.impala import ImpalaEncoder
from expgen.networks.memory import Memory
from expgen.networks.plain_copy import has_replaceable_encode, plain_copy

MIN_BATCH = 32  # observations of the smallest recorded graph for inference: smaller ones are hardly faster
SHAPES_PER_ENCODER = 8  # at most: for acting, minibatches and values, two batch sizes each


def for_play(policy: Policy) -> Policy:
    """Return a frozen copy of `policy`, accelerated for inference; on a GPU it computes as it does in training.

    The copy must not be trained, because its speed relies on constant weights. A policy without convolutions is copied
    without acceleration: there is little to gain.
    """
    frozen = plain_copy(policy).requires_grad_(False)
    if not any(isinstance(part, nn.Conv2d) for part in frozen.modules()):
        return frozen
    if next(frozen.parameters()).device.type == "cpu":
        for part in policies_in(frozen):
            part.encode = CachedEncoder(part.encoder)
        return frozen
    accelerate_networks(frozen, may_compile=False)
    replayed: Any = ReplayedPolicy(frozen)  # has the interface of a Policy
    return replayed if is_capturable(frozen) else frozen


def recorded_forward(policy: Policy, inputs: tuple[Tensor, Tensor, Tensor]) -> Callable[[], object]:
    """Return a function that runs `policy` on `inputs`, as acting does on their device."""
    if inputs[0].is_cuda:
        accelerate_networks(policy)
        with torch.no_grad():
            return RecordedFunction(policy, inputs, capture_on_gpu).replay
    return lambda: policy(*inputs)


def accelerate_networks(network: nn.Module, may_compile: bool = True) -> None:
    """Use bf16 for encoders and GRUs, by our own kernels or compiled; losses and optimiser state stay float32."""
    parts: list[Any] = list(network.modules())
    for part in parts:
        if isinstance(part, Memory):
            part.scan = fused_gru(part.gru)
        if has_replaceable_encode(part):
            part.encode = fast_encode(part.encoder, may_compile)


def fast_encode(encoder: Any, may_compile: bool = True) -> Callable[[Tensor], Tensor]:
    """Return the fastest forward function of `encoder`; compiling takes seconds for every shape."""
    if can_fuse(encoder) and is_supported_gpu(encoder.linear.weight.device):
        return FusedImpala(encoder)
    if hasattr(encoder, "is_bfloat16"):
        encoder.is_bfloat16 = True
        if may_compile:
            limits = torch._dynamo.config  # beyond its limits encoders would run uncompiled
            limits.cache_size_limit += SHAPES_PER_ENCODER
            limits.accumulated_cache_size_limit = max(limits.accumulated_cache_size_limit, limits.cache_size_limit)
            return torch.compile(encoder.forward, dynamic=False)
    return encoder.forward


def use_bfloat16(networks: Sequence[nn.Module], learner: str) -> None:
    """Let the encoders of a learner's `networks` compute in bfloat16 on the CPU; raise InputError if none of them can.

    Weights, memory, heads, losses and optimiser state stay float32. CPUs with bfloat16 instructions (AVX512-BF16, AMX)
    need 40 % less time; on others it works, but is slower.
    """
    encoders: list[Any] = [part for network in networks for part in network.modules() if hasattr(part, "is_bfloat16")]
    if not encoders:
        problem = f"--precision is bfloat16 but the encoder of {learner} is not impala or impoola"
        raise InputError(f"{problem}; accepted: auto, float32")
    for encoder in encoders:
        encoder.is_bfloat16 = True


def use_threaded_encoders(networks: Sequence[nn.Module]) -> None:
    """Let the IMPALA encoders of `networks` train on the CPU in chunks, in several threads."""
    parts: list[Any] = [part for network in networks for part in network.modules()]
    for part in parts:
        if has_replaceable_encode(part) and type(part.encoder) is ImpalaEncoder:
            part.encode = ThreadedEncoder(part.encoder)


def is_capturable(policy: nn.Module) -> bool:
    """Return whether a gradient step can be captured: torch's GRU cannot, our kernels can."""
    return all(part.scan is not None for part in policy.modules() if isinstance(part, Memory))


class ReplayedPolicy(nn.Module):
    """Runs a frozen policy for one step at a time by replaying a CUDA graph.

    The number of environments changes from step to step (members vote only where nobody explores), but a graph has
    fixed shapes, so inputs are padded to the next power of two.
    """

    def __init__(self, policy: Policy, capture: Capture = capture_on_gpu) -> None:
        super().__init__()
        self.policy, self.capture = policy, capture
        self.recordings: dict[int, RecordedFunction] = {}

    @property
    def state_size(self) -> int:
        return self.policy.state_size

    @torch.no_grad()
    def forward(self, obs: Tensor, first: Tensor, state: Tensor) -> PolicyOutput:
        """Return the policy's output for `obs` `[1, n, …]`, `first` `[1, n]`, `state` `[n, S]`."""
        count = first.shape[1]
        size = max(MIN_BATCH, 1 << (count - 1).bit_length())
        inputs = (padded(obs, 1, size), padded(first, 1, size), padded(state, 0, size))
        if size not in self.recordings:
            self.recordings[size] = RecordedFunction(self.policy, inputs, self.capture)
        logits, value, after = self.recordings[size](inputs)
        return PolicyOutput(logits[:, :count], value[:, :count], after[:count])


def padded(tensor: Tensor, dimension: int, size: int) -> Tensor:
    """Return `tensor` padded with zeros to `size` along `dimension`."""
    missing = size - tensor.shape[dimension]
    later_dimensions = [0, 0] * (tensor.dim() - 1 - dimension)  # F.pad starts with the last dimension
    return F.pad(tensor, [*later_dimensions, 0, missing]) if missing else tensor
