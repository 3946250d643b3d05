"""Where the reward a policy learns from comes from: the game's own, here; others beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from numpy import ndarray
from torch import Tensor

from expgen.reward.scale import ReturnScaler
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


class RewardSource(Protocol):
    """Turns a finished rollout into `[T, N]` rewards; may remember what it needs across rollouts."""

    @property
    def intrinsic(self) -> Tensor | None:
        """`[T, N]` r_I of the last rollout (empty before the first); None where r_I plays no part."""

    @property
    def end_value(self) -> float:
        """κ: the share of V(s_t) that a step which ends the episode by success or time-out is still worth."""

    def __call__(self, rollout: Rollout) -> Tensor: ...

    def state(self) -> dict[str, ndarray]: ...

    def load_state(self, state: Mapping[str, ndarray]) -> None: ...


@dataclass(frozen=True)
class GameRewardConfig:
    """The reward the game pays."""

    normalize_reward: bool = setting(True, "divide rewards by the running std of the discounted return")
    normalize_with: Literal["step", "rollout"] = setting(
        "step", "that std knows all returns up to a reward's own step, or up to the end of its rollout"
    )


class GameReward:
    """The game's own reward, scaled unless the config says raw."""

    intrinsic = None
    end_value = 0.0

    def __init__(self, config: GameRewardConfig, num_envs: int) -> None:
        whole = config.normalize_with == "rollout"
        self.scaler = ReturnScaler(num_envs, whole) if config.normalize_reward else None

    def __call__(self, rollout: Rollout) -> Tensor:
        if self.scaler is None:
            return rollout.game_reward
        self.scaler.begin(rollout.host_first.numpy()[0])
        scaled = self.scaler(rollout.host_reward.numpy(), rollout.host_first.numpy()[1:])
        return torch.from_numpy(scaled).to(rollout.device)

    def state(self) -> dict[str, ndarray]:
        return self.scaler.state() if self.scaler else {}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        if self.scaler:
            self.scaler.load_state(state)
