"""Algorithm: the interface between the trainer and a learning method."""

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
    """A learning method, which owns its networks and optimisers. Its config has `gamma` and `gae_lambda`.

    For each rollout the trainer calls `before_rollout`, plays, computes rewards, calls `compute_values`, fills in
    advantages and value targets, and iterates over `update`.
    """

    policy: Policy
    config: Any
    value_network: ValueNetwork | None = None  # a separate value network, which acting does not use

    @abstractmethod
    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Learn from one rollout, with random numbers from `generator`; yield the metrics of each minibatch."""

    @abstractmethod
    def parts(self) -> Mapping[str, Part]:
        """Return the networks, optimisers and other state to checkpoint, by name; `policy` comes first."""

    def before_rollout(self, env: VecEnv) -> None:
        """Hook called before each rollout is played in `env`."""
        return

    def compute_values(self, rollout: Rollout) -> None:
        """Fill `rollout.value` from the value network; without one, the policy filled it while acting.

        The weights do not change during a rollout, so these equal the values computed step by step; a few large batches
        are much faster than one small batch per step.
        """
        if self.value_network is not None:
            frames = rollout.obs.flatten(0, 1)  # [(T+1) · N, …]
            value = torch.cat([self.values(chunk) for chunk in frames.tensor_split(self.config.minibatches)])
            rollout.value.copy_(value.view_as(rollout.value))

    @torch.no_grad()
    def values(self, obs: Tensor) -> Tensor:
        """Return the value network's V `[B]` of `obs` `[B, …]`."""
        assert self.value_network is not None
        return self.value_network(obs.unsqueeze(0)).squeeze(0)

    def state(self) -> dict[str, Tensor]:
        """Return every tensor of the parts, named `part.tensor`."""
        return state_of(self.parts())

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""
        load_parts(self.parts(), state)
