"""Critic: a value network that learns in phases of its own, as DAAC and IDAAC have it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from expgen.algorithms.descent import Descent
from expgen.algorithms.losses import clipped_value_loss
from expgen.algorithms.protocol import Metrics
from expgen.networks.decoupled import ValueNetwork
from expgen.networks.state import Part, load_parts, state_of
from expgen.rollout.minibatch import Minibatch, Order, minibatches
from expgen.rollout.rollout import Rollout


@dataclass(frozen=True)
class CriticConfig:
    """How a critic learns; made from the config of the algorithm that has it."""

    every: int  # N_π: rollouts between two value phases
    epochs: int  # E_V
    minibatches: int
    minibatch_order: Order
    learning_rate: float
    adam_epsilon: float
    clip: float
    max_grad_norm: float


class Critic:
    """Owns a value network, its Adam, and the count that says when it learns."""

    def __init__(self, network: ValueNetwork, config: CriticConfig) -> None:
        self.network, self.config = network, config
        self.descent = Descent(network.parameters(), config.learning_rate, config.adam_epsilon, config.max_grad_norm)
        self.num_rollouts = 0

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """E_V epochs over the rollout, if it is one of every N_π (the first is)."""
        config, is_due = self.config, self.num_rollouts % self.config.every == 0
        self.num_rollouts += 1
        unread = rollout.advantage  # value targets alone are learnt from
        for _ in range(config.epochs if is_due else 0):
            for batch in minibatches(rollout, unread, config.minibatches, config.minibatch_order, generator):
                yield self.step(batch)

    def step(self, batch: Minibatch) -> Metrics:
        """One gradient step on L_V."""
        loss = clipped_value_loss(self.network(batch.obs), batch.value, batch.value_target, self.config.clip)
        norm = self.descent.step(loss)
        return {"value_loss": loss.detach(), "value_grad_norm": norm}

    def compute_values(self, rollout: Rollout) -> None:
        """V of every observation of a finished rollout, in `rollout.value`."""
        fill_values(self.values, rollout, self.config.minibatches)

    @torch.no_grad()
    def values(self, obs: Tensor) -> Tensor:
        """V `[B]` of `obs` `[B, …]`."""
        return self.network(obs.unsqueeze(0)).squeeze(0)

    def parts(self) -> dict[str, Part]:
        """What a checkpoint holds of it, beside the count."""
        return {"network": self.network, "adam": self.descent}

    def state(self) -> dict[str, Tensor]:
        """Weights, optimiser and count."""
        return {**state_of(self.parts()), "num_rollouts": torch.tensor(self.num_rollouts)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`."""
        load_parts(self.parts(), state)
        self.num_rollouts = int(state["num_rollouts"])


def fill_values(values: Callable[[Tensor], Tensor], rollout: Rollout, num_parts: int) -> None:
    """`values` of every observation of a finished rollout, a part of them at a time, into `rollout.value`.

    Nothing moves the weights while a rollout is played, so these are the values an actor would have stored step by
    step; a few large batches cost far less than one small batch a step.
    """
    frames = rollout.obs.flatten(0, 1)  # [(T+1) · N, …]
    value = torch.cat([values(part) for part in frames.tensor_split(num_parts)])
    rollout.value.copy_(value.view_as(rollout.value))
