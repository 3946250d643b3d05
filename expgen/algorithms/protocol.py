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
        """Fill `rollout.value` of a finished rollout where the policy, as it acted, has not."""
        return

    def state(self) -> dict[str, Tensor]:
        """Every tensor of the parts: weights under `policy.…`, and so on."""
        return state_of(self.parts())

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`."""
        load_parts(self.parts(), state)
