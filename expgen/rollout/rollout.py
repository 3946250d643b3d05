"""Rollout: T steps of N environments as tensors, allocated once and reused."""

import copy

import numpy as np
import torch
from torch import Tensor

from expgen.envs.vec_env import EnvSpec, Observation

_DTYPES = {"uint8": torch.uint8, "float32": torch.float32}


class Rollout:
    """The same for every algorithm. `first`, never `done`.

    Small per-step facts are written on the host (`host_…`) while games are played, and uploaded in one go by
    `finish`; on the CPU both are the same memory.
    """

    def __init__(
        self,
        spec: EnvSpec,
        num_steps: int,
        num_envs: int,
        state_size: int,
        device: torch.device,
        full_view: bool = False,
    ) -> None:
        self.num_steps, self.num_envs, self.device = num_steps, num_envs, device
        T, N = num_steps, num_envs
        dtype = _DTYPES[spec.obs_dtype]

        def on_device(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.obs = on_device(T + 1, N, *spec.obs_shape, dtype=dtype)
        self.full = on_device(T + 1, N, *spec.obs_shape, dtype=dtype) if full_view else self.obs  # what r_I measures
        self.value = on_device(T + 1, N)
        self.action = on_device(T + 1, N, dtype=torch.int64)  # slot T is scratch, as in log_prob
        self.log_prob = on_device(T + 1, N)
        self.noise = on_device(T + 1, N, spec.num_actions)  # Gumbel noise that decides the actions
        self.state = on_device(T + 2, N, state_size)  # memory before each step
        self.advantage = on_device(T, N)
        self.value_target = on_device(T, N)
        self.reward = on_device(T, N)  # what the algorithm learns from; filled by the reward source

        self.host_reward = _on_host(device, T, N)  # the game's own
        self.host_first = _on_host(device, T + 1, N, dtype=torch.bool)
        self.host_level = _on_host(device, T + 1, N, dtype=torch.int32)
        self.host_solved = _on_host(device, T + 1, N, dtype=torch.bool)
        self.host_survived = _on_host(device, T + 1, N, dtype=torch.bool)  # an episode ended, by success or time-out
        self.first = self.host_first.to(device)
        self.game_reward = self.host_reward.to(device)
        self.level = self.host_level.to(device)
        self.survived = self.host_survived.to(device)
        # numpy views of the host tensors: the cheapest way to write a row
        written = (self.host_reward, self.host_first, self.host_level, self.host_solved, self.host_survived)
        self._rows = tuple(tensor.numpy() for tensor in written)

    def record(self, t: int, observation: Observation) -> None:
        """Store what the environment shows at step `t`, and what the step into it paid."""
        reward, first, level, solved, survived = self._rows
        if t > 0:
            reward[t - 1] = observation.reward
        first[t] = observation.first
        level[t] = observation.level
        solved[t] = observation.solved
        np.logical_or(observation.solved, observation.timed_out, out=survived[t])
        self.obs[t].copy_(torch.from_numpy(observation.obs), non_blocking=True)
        if self.full is not self.obs:
            self.full[t].copy_(torch.from_numpy(observation.full), non_blocking=True)
        if self.first is not self.host_first and self.state.shape[-1]:
            self.first[t].copy_(self.host_first[t], non_blocking=True)

    def finish(self) -> None:
        """Bring the host's rows to the device, once per rollout."""
        if self.first is not self.host_first:
            self.first.copy_(self.host_first, non_blocking=True)
            self.game_reward.copy_(self.host_reward, non_blocking=True)
            self.level.copy_(self.host_level, non_blocking=True)
            self.survived.copy_(self.host_survived, non_blocking=True)

    def columns(self, begin: int, end: int) -> "Rollout":
        """Environments begin..end-1 of what learning reads, sharing this rollout's memory."""
        part = copy.copy(self)
        part.num_envs = end - begin
        for name in ("obs", "first", "state", "action", "log_prob", "value", "advantage", "value_target", "reward"):
            setattr(part, name, getattr(self, name)[:, begin:end])
        return part

    def carry_over(self) -> None:
        """Start the next rollout with the memory this one ended with."""
        self.state[0].copy_(self.state[self.num_steps])

    def draw_noise(self, generator: torch.Generator) -> None:
        """Fresh Gumbel noise for every step: argmax(logits + noise) is a sample of softmax(logits)."""
        self.noise.exponential_(generator=generator).log_().neg_()


def _on_host(device: torch.device, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype, pin_memory=device.type == "cuda")
