"""bf16, compilation, CUDA graphs, streams and written-out gradients: the only file that chooses them.

A `Lane` is where one learner's work runs. On the CPU it is plain function calls, or, for a dense policy without
memory, the same arithmetic written out (`dense_lane`, `dense_ppo`). On a GPU acting runs on a
high-priority stream as a captured graph and updates on an ordinary one, so that one learner's actions slip in between
another's minibatches; the launches never wait for the host.
"""

import copy
import importlib.util
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor, nn

from expgen.algorithms.algorithm import Algorithm, HasCritic
from expgen.algorithms.ppo import PPO
from expgen.algorithms.runner import HasRunner
from expgen.envs.vec_env import Observation
from expgen.networks.actor_critic import Policy
from expgen.networks.conv import has_convolution
from expgen.networks.memory import Memory
from expgen.networks.small import SmallEncoder
from expgen.rollout.rollout import Rollout
from expgen.rollout.sampling import act_in_slot
from expgen.training.dense_lane import DenseLane
from expgen.training.dense_ppo import DensePPO
from expgen.training.graphs import Graphs, Recording, capture_on_gpu
from expgen.training.replayed_policy import ReplayedPolicy

DENSE_MAX_INPUTS = 4096  # numbers in an observation; beyond, keeping each as float32 costs more memory than it is worth
SHAPES_OF_AN_ENCODER = 8  # batches it is compiled for at most: acting, minibatches and values, each of two sizes
MINIBATCHES_AHEAD = 2  # how far the host may run ahead of the GPU in one learner's update


class Lane(Protocol):
    """An Actor, and the place where updates run."""

    def start(self, t: int, observation: Observation) -> None: ...

    def wait(self) -> ndarray: ...

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Work inside runs after the rollout and before the next one; never yield inside."""

    def backlog(self) -> int:
        """How many of the `updating` blocks handed over are still unfinished."""

    def close(self) -> None:
        """Let go of the environment's buffers; call before the environment is closed."""


def make_lane(policy: Policy, rollout: Rollout) -> Lane:
    """The fastest lane for this policy on its device."""
    if rollout.device.type == "cuda":
        return CudaLane(policy, rollout)
    if is_dense(policy) and rollout.obs[0, 0].numel() <= DENSE_MAX_INPUTS:
        return DenseLane(policy, rollout)
    return PlainLane(policy, rollout)


def is_dense(policy: Policy) -> bool:
    """Whether the policy is a SmallEncoder and two heads in float32, nothing else: what `dense_network` computes."""
    is_float32 = all(parameter.dtype == torch.float32 for parameter in policy.parameters())
    return type(policy) is Policy and isinstance(policy.encoder, SmallEncoder) and policy.memory is None and is_float32


def make_learning(algorithm: Algorithm, lane: Lane) -> Algorithm:
    """The fastest form of `algorithm` for the lane it learns in; the same checkpoints, the same function."""
    if isinstance(lane, DenseLane) and type(algorithm) is PPO:
        return DensePPO(algorithm, lane.network, lane.rows)
    if isinstance(lane, CudaLane) and isinstance(algorithm, HasCritic):
        accelerate_networks(algorithm.value_network)
    if isinstance(lane, CudaLane) and isinstance(algorithm, HasRunner) and is_capturable(algorithm.policy):
        algorithm.run = Graphs(algorithm, lane.rollout)
    return algorithm


def is_capturable(policy: nn.Module) -> bool:
    """Whether a whole gradient step has fixed shapes and no host values: memory has them in our own kernel alone."""
    return all(part.scan is not None for part in policy.modules() if isinstance(part, Memory))


class PlainLane:
    """Everything at once, in the order it is asked for."""

    def __init__(self, policy: Policy, rollout: Rollout) -> None:
        self.policy, self.rollout = policy, rollout
        self.slots = torch.arange(rollout.num_steps + 1).split(1)
        self.action = np.zeros(rollout.num_envs, dtype=np.int32)
        self.decided = rollout.action.numpy()

    def start(self, t: int, observation: Observation) -> None:
        self.rollout.record(t, observation)
        act_in_slot(self.policy, self.rollout, self.slots[t])
        self.action[:] = self.decided[t]

    def wait(self) -> ndarray:
        return self.action

    @contextmanager
    def updating(self) -> Iterator[None]:
        yield

    def backlog(self) -> int:
        return 0

    def close(self) -> None: ...


class CudaLane:
    """Graph capture for acting, two streams, and a bf16 compiled encoder for updates."""

    def __init__(self, policy: Policy, rollout: Rollout) -> None:
        self.policy, self.rollout = policy, rollout
        accelerate_networks(policy)
        self.acting = torch.cuda.Stream(rollout.device, priority=-1)
        self.update = torch.cuda.Stream(rollout.device)
        self.slot = torch.zeros(1, dtype=torch.int64, device=rollout.device)
        self.action = torch.zeros(rollout.num_envs, dtype=torch.int32, pin_memory=True)
        self.action_view = self.action.numpy()
        self.decided = torch.cuda.Event()
        self.handed_over: deque[torch.cuda.Event] = deque()
        self.pinned: dict[int, bool] = {}  # buffers seen, and whether this lane page-locked them
        self.graph = self._capture()

    def start(self, t: int, observation: Observation) -> None:
        self._pin(observation.obs)
        self._pin(observation.full)
        with torch.cuda.stream(self.acting):
            if t == 0:
                self.acting.wait_stream(self.update)
                self.slot.zero_()
            self.rollout.record(t, observation)
            self.graph.replay()
            self.action.copy_(self.device_action, non_blocking=True)
            self.decided.record(self.acting)

    def wait(self) -> ndarray:
        self.decided.synchronize()  # the CPU waits for the GPU here
        return self.action_view

    @contextmanager
    def updating(self) -> Iterator[None]:
        with torch.cuda.stream(self.update):
            self.update.wait_stream(self.acting)
            yield
            event = torch.cuda.Event()
            event.record(self.update)
            self.handed_over.append(event)

    def backlog(self) -> int:
        while self.handed_over and self.handed_over[0].query():
            self.handed_over.popleft()
        return len(self.handed_over)

    def _step(self) -> None:
        act_in_slot(self.policy, self.rollout, self.slot)
        self.device_action.copy_(self.rollout.action.index_select(0, self.slot)[0])
        self.slot.add_(1)

    def _capture(self) -> torch.cuda.CUDAGraph:
        self.device_action = torch.zeros_like(self.action, device=self.rollout.device, pin_memory=False)
        state = self.rollout.state[1].clone()  # warming up plays slot 0 and must leave no trace in the memory
        self.acting.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.acting):
            for _ in range(3):
                self.slot.zero_()
                self._step()
            self.slot.zero_()
        self.acting.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.acting):
            self._step()
        self.acting.synchronize()
        self.rollout.state[1].copy_(state)
        torch.cuda.synchronize()
        return graph

    def _pin(self, array: ndarray) -> None:
        """Page-lock the environment's own buffer, so that copies from it run beside the host."""
        address = array.__array_interface__["data"][0]
        if address not in self.pinned:
            is_free = not torch.from_numpy(array).is_pinned()
            self.pinned[address] = is_free and int(torch.cuda.cudart().cudaHostRegister(address, array.nbytes, 0)) == 0

    def close(self) -> None:
        torch.cuda.synchronize(self.rollout.device)
        for address in [address for address, is_ours in self.pinned.items() if is_ours]:
            torch.cuda.cudart().cudaHostUnregister(address)
        self.pinned.clear()


def for_play(policy: Policy) -> Policy:
    """A frozen policy as fast as its device plays it; on a GPU it computes as it acted in training.

    Policies without convolutions stay what they are: an ensemble of them has a faster way (agents.ensemble).
    """
    if next(policy.parameters()).device.type != "cuda" or not has_convolution(policy):
        return policy
    accelerate_networks(policy, may_compile=False)
    replayed: Any = ReplayedPolicy(policy)  # is called like one
    return replayed if is_capturable(policy) else policy


def recorded_forward(policy: Policy, asked: tuple[Tensor, Tensor, Tensor]) -> Callable[[], object]:
    """One forward over the same inputs again and again, as acting does it on their device."""
    if asked[0].is_cuda:
        accelerate_networks(policy)
        with torch.no_grad():
            return Recording(policy, asked, [True] * len(asked), capture_on_gpu).replay
    return lambda: policy(*asked)


def accelerate_networks(network: nn.Module, may_compile: bool = True) -> None:
    """bf16 for convolutions and memory, by our own kernels or compiled; losses and optimiser state stay float32."""
    parts: list[Any] = list(network.modules())
    for part in parts:
        if isinstance(part, Memory) and has_kernels():
            from expgen.kernels.gru import FusedGru, can_fuse_gru

            part.scan = FusedGru(part.gru) if can_fuse_gru(part.gru) else None
        if has_seam(part):
            part.encode = fast_encode(part.encoder, may_compile)


def fast_encode(encoder: Any, may_compile: bool = True) -> Callable[[Tensor], Tensor]:
    """The encoder's forward, as fast as we have it; compiling takes seconds for every shape."""
    if has_kernels():
        from expgen.kernels.impala_encoder import FusedImpala, can_fuse

        if can_fuse(encoder):
            return FusedImpala(encoder)
    if may_compile and hasattr(encoder, "is_bfloat16"):
        encoder.is_bfloat16 = True
        make_room_to_compile()
        return torch.compile(encoder.forward, dynamic=False)
    return encoder.forward


def make_room_to_compile() -> None:
    """For one more encoder: all of a class count together, and beyond the limit they run uncompiled."""
    config = torch._dynamo.config
    config.cache_size_limit += SHAPES_OF_AN_ENCODER
    config.accumulated_cache_size_limit = max(config.accumulated_cache_size_limit, config.cache_size_limit)


def has_seam(part: nn.Module) -> bool:
    """Whether a module calls its `encoder` through an `encode` that may be replaced."""
    return hasattr(part, "encode") and hasattr(part, "encoder")


def plain_copy(policy: Policy) -> Policy:
    """The policy as it is now, computed by its modules in float32, as it will be wherever it is loaded."""
    plain = copy.deepcopy(policy).eval()
    parts: list[Any] = list(plain.modules())
    for part in parts:
        if has_seam(part):
            part.encode = part.encoder.forward
        if hasattr(part, "is_bfloat16"):
            part.is_bfloat16 = False
        if isinstance(part, Memory):
            part.scan = None
    return plain


def has_kernels() -> bool:
    """Whether Triton, which our kernels are written in, is installed."""
    return importlib.util.find_spec("triton") is not None


def mean_of(metrics: list[dict[str, Tensor]]) -> dict[str, float]:
    """Each metric's mean over the minibatches that have it; one transfer for all of them."""
    names = list(dict.fromkeys(name for row in metrics for name in row))
    means = [torch.stack([row[name].float() for row in metrics if name in row]).mean() for name in names]
    return dict(zip(names, torch.stack(means).tolist(), strict=True))
