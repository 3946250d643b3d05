"""What the trainer knows of an algorithm."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from expgen.envs.vec_env import VecEnv
from expgen.networks.actor_critic import Policy
from expgen.networks.decoupled import ValueNetwork
from expgen.networks.state import Part, load_parts, state_of
from expgen.rollout.rollout import Rollout

Metrics = dict[str, Tensor]  # 0-d tensors on the device, by name


class Algorithm(ABC):
    """Owns its networks and optimisers, nothing else. Its config says `gamma` and `gae_lambda`.

    For each rollout the trainer calls `before_rollout`, plays, computes rewards, calls `compute_values`, fills in
    advantages and value targets, and walks `update`.
    """

    policy: Policy
    config: Any
    value_network: ValueNetwork | None = None  # where values have a network of their own, which acting does without

    @abstractmethod
    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Learn from one rollout, with random numbers from `generator`; one item per minibatch."""

    @abstractmethod
    def parts(self) -> Mapping[str, Part]:
        """Networks, optimisers and whatever else a resumed run needs, by name in a checkpoint; `policy` first."""

    def before_rollout(self, env: VecEnv) -> None:
        """Called before each rollout is played in `env`."""
        return

    def compute_values(self, rollout: Rollout) -> None:
        """Fill `rollout.value` of a finished rollout by the value network; without one the policy has, as it acted.

        Nothing moves the weights while a rollout is played, so these are the values an actor would have stored step by
        step; a few large batches, as many as minibatches, cost far less than one small batch a step.
        """
        if self.value_network is not None:
            frames = rollout.obs.flatten(0, 1)  # [(T+1) · N, …]
            value = torch.cat([self.values(part) for part in frames.tensor_split(self.config.minibatches)])
            rollout.value.copy_(value.view_as(rollout.value))

    @torch.no_grad()
    def values(self, obs: Tensor) -> Tensor:
        """The value network's V `[B]` of `obs` `[B, …]`."""
        assert self.value_network is not None
        return self.value_network(obs.unsqueeze(0)).squeeze(0)

    def state(self) -> dict[str, Tensor]:
        """Every tensor of the parts: weights under `policy.…`, and so on."""
        return state_of(self.parts())

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`."""
        load_parts(self.parts(), state)
