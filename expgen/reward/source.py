"""RewardSource: computes the rewards a policy learns from. GameReward, the game's own, is the default."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from expgen.envs.vec_env import EnvSpec
from expgen.networks.state import Part, load_parts, state_of
from expgen.reward.scale import ReturnScaler
from expgen.rollout.rollout import Rollout
from expgen.settings import later_setting, setting

MAX_DEATH_COST = 1000.0


class RewardSource(ABC):
    """Computes `[T, N]` rewards from a finished rollout; may keep state across rollouts."""

    intrinsic: Tensor | None = None  # [T, N] r_I of the last rollout (empty before the first); None: r_I is not used
    end_value: float = 0.0  # κ: share of V(s_t) bootstrapped when an episode ends by success or time-out

    @abstractmethod
    def __call__(self, rollout: Rollout) -> Tensor:
        """Return the reward of each step of the rollout, `[T, N]` float32 on its device."""

    def prepare(self, spec: EnvSpec, device: torch.device, seed: int) -> None:
        """Hook called once before training with the environment's spec, the rollouts' device and the learner's seed."""
        return

    def parts(self) -> Mapping[str, Part]:
        """Return the networks, optimisers and other state to checkpoint, by name."""
        return {}

    def state(self) -> dict[str, ndarray]:
        """Return every tensor of the parts as an array, named `part.tensor`."""
        return {name: tensor.detach().cpu().numpy() for name, tensor in state_of(self.parts()).items()}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        """Restore what `state` returned."""
        load_parts(self.parts(), {name: torch.from_numpy(np.array(array)) for name, array in state.items()})


def death_cost_setting() -> Any:
    """Return the setting `death_cost`, which every reward that contains the game's has."""
    text = "subtracted from the game's reward where an episode ends by death, not by success or time-out"
    return later_setting(0.0, text, low=0, high=MAX_DEATH_COST)


def subtract_deaths(reward: Tensor, first: Tensor, survived: Tensor, death_cost: float) -> Tensor:
    """Return `reward` `[T, N]` less `death_cost` at steps after which an episode ended by death.

    first, survived: `[T+1, N]` bool, the rollout's; an episode that ends without being survived ends by death.
    """
    return reward - death_cost * (first & ~survived)[1:] if death_cost else reward


@dataclass(frozen=True)
class GameRewardConfig:
    """Settings of the game's reward."""

    normalize_reward: bool = setting(True, "divide rewards by the running std of the discounted return")
    normalize_with: Literal["step", "rollout"] = setting("step", "update that std at every step, or once per rollout")
    death_cost: float = death_cost_setting()


class GameReward(RewardSource):
    """The game's reward less the cost of deaths, divided by the running std of its return if `normalize_reward`."""

    def __init__(self, config: GameRewardConfig, num_envs: int) -> None:
        per_rollout = config.normalize_with == "rollout"
        self.scaler = ReturnScaler(num_envs, per_rollout) if config.normalize_reward else None
        self.death_cost = config.death_cost

    def __call__(self, rollout: Rollout) -> Tensor:
        first = rollout.host_first
        reward = subtract_deaths(rollout.host_reward, first, rollout.host_survived, self.death_cost)
        if self.scaler is None:
            return reward.to(rollout.device)
        self.scaler.reset_where(first.numpy()[0])
        scaled = self.scaler(reward.numpy(), first.numpy()[1:])
        return torch.from_numpy(scaled).to(rollout.device)

    def state(self) -> dict[str, ndarray]:
        return self.scaler.state() if self.scaler else {}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        if self.scaler:
            self.scaler.load_state(state)
