"""Critic: a value network that learns in phases of its own, as DAAC and IDAAC have it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from expgen.algorithms.descent import Descent
from expgen.algorithms.losses import clipped_value_loss
from expgen.algorithms.ppo import Metrics
from expgen.algorithms.runner import Runner
from expgen.networks.decoupled import ValueNetwork
from expgen.networks.state import load_module, under_prefix, with_prefix
from expgen.rollout.minibatch import Minibatch, Order, everything, gather, minibatch_places
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

    def update(self, rollout: Rollout, generator: torch.Generator, run: Runner) -> Iterator[Metrics]:
        """E_V epochs over the rollout, if it is one of every N_π (the first is)."""
        config, is_due = self.config, self.num_rollouts % self.config.every == 0
        self.num_rollouts += 1
        for _ in range(config.epochs if is_due else 0):
            whole = everything(rollout, rollout.advantage)  # which is not read: value targets alone are learnt from
            for place in minibatch_places(rollout, config.minibatches, config.minibatch_order, generator):
                yield run(self.step_at, whole, place)

    def step_at(self, whole: Minibatch, place: Tensor) -> Metrics:
        """One gradient step on the minibatch of `whole` at `place`."""
        return self.step(gather(whole, place, self.config.minibatch_order))

    def step(self, batch: Minibatch) -> Metrics:
        """One gradient step on L_V."""
        loss = clipped_value_loss(self.network(batch.obs), batch.value, batch.value_target, self.config.clip)
        norm = self.descent.step(loss)
        return {"value_loss": loss.detach(), "value_grad_norm": norm}

    def state(self) -> dict[str, Tensor]:
        """Weights, optimiser and count."""
        return {
            **with_prefix("network", self.network.state_dict()),
            **with_prefix("adam", self.descent.state()),
            "num_rollouts": torch.tensor(self.num_rollouts),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`."""
        load_module(self.network, under_prefix("network", state), "the checkpoint")
        self.descent.load_state(under_prefix("adam", state))
        self.num_rollouts = int(state["num_rollouts"])


@torch.no_grad()
def judge(network: ValueNetwork, rollout: Rollout, num_parts: int, run: Runner) -> None:
    """V of every observation of a finished rollout, in `rollout.value`.

    Nothing moves the weights while a rollout is played, so these are the values an actor would have stored step by
    step; a few large batches cost far less than one small batch a step.
    """
    frames = rollout.obs.flatten(0, 1)  # [(T+1) · N, …]
    rows = torch.arange(len(frames), device=frames.device).tensor_split(num_parts)
    value = torch.cat([run(values_at, network, frames, row) for row in rows])
    rollout.value.copy_(value.view_as(rollout.value))


def values_at(network: ValueNetwork, frames: Tensor, row: Tensor) -> Tensor:
    """V `[B]` of some of the frames."""
    return network(frames.index_select(0, row).unsqueeze(0)).squeeze(0)
