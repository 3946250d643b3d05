"""Rollout: T steps of N environments as tensors, allocated once and reused."""

import numpy as np
import torch
from torch import Tensor

from expgen.envs.vec_env import EnvSpec, Observation

_DTYPES = {"uint8": torch.uint8, "float32": torch.float32}


class Rollout:
    """The tensors that every algorithm learns from; `first` marks observations that open an episode.

    Small per-step values are written on the host (`host_…`) while games are played, and `finish` copies them to the
    device at once; on the CPU both are the same memory.
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
        """`state_size` is S, the size of the policy's memory; `full_view` stores the uncentred view for r_I as well."""
        self.num_steps, self.num_envs, self.device = num_steps, num_envs, device
        T, N = num_steps, num_envs
        dtype = _DTYPES[spec.obs_dtype]

        def on_device(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        def on_host(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, pin_memory=device.type == "cuda")

        self.obs = on_device(T + 1, N, *spec.obs_shape, dtype=dtype)
        self.full = on_device(T + 1, N, *spec.obs_shape, dtype=dtype) if full_view else self.obs  # the view for r_I
        self.value = on_device(T + 1, N)
        self.action = on_device(T + 1, N, dtype=torch.int64)  # slot T is scratch, also in log_prob
        self.log_prob = on_device(T + 1, N)
        self.noise = on_device(T + 1, N, spec.num_actions)  # Gumbel noise, from which actions are sampled
        self.state = on_device(T + 2, N, state_size)  # memory before each step
        self.advantage = on_device(T, N)
        self.value_target = on_device(T, N)
        self.reward = on_device(T, N)  # filled by the reward source

        self.host_reward = on_host(T, N)  # the game's reward
        self.host_first = on_host(T + 1, N, dtype=torch.bool)
        self.host_level = on_host(T + 1, N, dtype=torch.int32)
        self.host_solved = on_host(T + 1, N, dtype=torch.bool)
        self.host_survived = on_host(T + 1, N, dtype=torch.bool)  # the previous episode ended by success or time-out
        self.first = self.host_first.to(device)
        self.game_reward = self.host_reward.to(device)
        self.level = self.host_level.to(device)
        self.survived = self.host_survived.to(device)
        # NumPy views of the host tensors, through which rows are written fastest
        host = (self.host_reward, self.host_first, self.host_level, self.host_solved, self.host_survived)
        self._host_arrays = tuple(tensor.numpy() for tensor in host)

    def record(self, t: int, observation: Observation) -> None:
        """Store `observation` in slot `t`, and its reward in slot `t - 1`, the step that led to it."""
        reward, first, level, solved, survived = self._host_arrays
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
        """Copy the host tensors to the device, once per rollout."""
        if self.first is not self.host_first:
            self.first.copy_(self.host_first, non_blocking=True)
            self.game_reward.copy_(self.host_reward, non_blocking=True)
            self.level.copy_(self.host_level, non_blocking=True)
            self.survived.copy_(self.host_survived, non_blocking=True)

    def carry_over(self) -> None:
        """Make the memory after step T the initial memory of the next rollout."""
        self.state[0].copy_(self.state[self.num_steps])

    def draw_noise(self, generator: torch.Generator) -> None:
        """Draw Gumbel noise for every step: argmax(logits + noise) is a sample from softmax(logits)."""
        self.noise.exponential_(generator=generator).log_().neg_()
