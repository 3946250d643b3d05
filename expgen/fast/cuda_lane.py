"""CudaLane: acts with a captured graph on a high-priority stream, updates on an ordinary stream.

One learner's acting can therefore run between another's minibatches, and launches never wait for the host.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from numpy import ndarray

from expgen.envs.vec_env import Observation
from expgen.fast.fast_networks import accelerate_networks
from expgen.fast.graphs import capture_on_gpu
from expgen.fast.kernels.prepared import prepared_in
from expgen.networks.actor_critic import Policy
from expgen.rollout.collect import act_in_slot
from expgen.rollout.rollout import Rollout

SPIN_SECONDS = 2e-4  # poll this long for actions, the latency of an idle GPU, before sleeping


class CudaLane:
    """Runs a learner on a GPU with two streams, a captured graph for acting and fast networks."""

    def __init__(self, policy: Policy, rollout: Rollout) -> None:
        self.policy, self.rollout = policy, rollout
        accelerate_networks(policy)
        self.acting = torch.cuda.Stream(rollout.device, priority=-1)
        self.update = torch.cuda.Stream(rollout.device)
        self.slot = torch.zeros(1, dtype=torch.int64, device=rollout.device)
        self.action = torch.zeros(rollout.num_envs, dtype=torch.int32, pin_memory=True)
        self.action_view = self.action.numpy()
        self.decided = torch.cuda.Event(blocking=True)
        self.unfinished: deque[torch.cuda.Event] = deque()
        self.pinned: dict[int, bool] = {}  # address of each buffer: whether this lane page-locked it
        with torch.no_grad(), self._prepared_weights():
            self.graph = self._capture()

    def start(self, t: int, observation: Observation) -> None:
        self._pin(observation.obs)
        self._pin(observation.full)
        with torch.cuda.stream(self.acting):
            if t == 0:
                self.acting.wait_stream(self.update)
                self.slot.zero_()
                self.refresh_weights()
            self.rollout.record(t, observation)
            self.graph.replay()
            self.action.copy_(self.device_action, non_blocking=True)
            self.decided.record(self.acting)

    def wait(self) -> ndarray:
        deadline = time.perf_counter() + SPIN_SECONDS
        while not self.decided.query():  # the CPU waits for the GPU here
            if time.perf_counter() > deadline:
                self.decided.synchronize()  # sleeps, which leaves the core to the games
        return self.action_view

    @contextmanager
    def updating(self) -> Iterator[None]:
        with torch.cuda.stream(self.update):
            self.update.wait_stream(self.acting)
            yield
            event = torch.cuda.Event()
            event.record(self.update)
            self.unfinished.append(event)

    def backlog(self) -> int:
        while self.unfinished and self.unfinished[0].query():
            self.unfinished.popleft()
        return len(self.unfinished)

    def _step(self) -> None:
        act_in_slot(self.policy, self.rollout, self.slot)
        self.device_action.copy_(self.rollout.action.index_select(0, self.slot)[0])
        self.slot.add_(1)

    @contextmanager
    def _prepared_weights(self) -> Iterator[None]:
        """Make graphs captured inside read prepared copies of the weights, which `refresh_weights` updates."""
        forms = prepared_in(self.policy)
        copies: tuple[Any, ...] = ()
        self.refresh_weights: Callable[[], None] = lambda: None
        self.acting.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.acting):
            if forms:
                copies, self.refresh_weights = capture_on_gpu(lambda: tuple(form.make() for form in forms))
        for form, copy in zip(forms, copies, strict=True):
            form.held = copy
        yield
        for form in forms:
            form.held = None

    def _capture(self) -> torch.cuda.CUDAGraph:
        self.device_action = torch.zeros_like(self.action, device=self.rollout.device, pin_memory=False)
        state = self.rollout.state[1].clone()  # the warm-up overwrites it
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
        """Page-lock the environment's buffer, so that copies from it are asynchronous."""
        address = array.__array_interface__["data"][0]
        if address not in self.pinned:
            is_paged = not torch.from_numpy(array).is_pinned()
            self.pinned[address] = is_paged and int(torch.cuda.cudart().cudaHostRegister(address, array.nbytes, 0)) == 0

    def close(self) -> None:
        torch.cuda.synchronize(self.rollout.device)
        for address in [address for address, is_ours in self.pinned.items() if is_ours]:
            torch.cuda.cudart().cudaHostUnregister(address)
        self.pinned.clear()
