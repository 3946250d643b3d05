"""Where the reward a policy learns from comes from: the game's own, here; others beside it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from expgen.envs.vec_env import EnvSpec
from expgen.networks.state import Part, load_parts, state_of
from expgen.reward.scale import ReturnScaler
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


class RewardSource(ABC):
    """Turns a finished rollout into `[T, N]` rewards; may remember what it needs across rollouts."""

    intrinsic: Tensor | None = None  # [T, N] r_I of the last rollout (empty before the first); None: it plays no part
    end_value: float = 0.0  # κ: share of V(s_t) that a step is still worth which ends by success or time-out

    @abstractmethod
    def __call__(self, rollout: Rollout) -> Tensor:
        """What each step of the rollout is paid, `[T, N]` float32 on its device."""

    def prepare(self, spec: EnvSpec, device: torch.device, seed: int) -> None:
        """Called once, before all else: what observations look like, where rollouts lie, and the learner's seed."""
        return

    def parts(self) -> Mapping[str, Part]:
        """Networks, optimisers and whatever else a resumed run needs, by name in a checkpoint."""
        return {}

    def state(self) -> dict[str, ndarray]:
        """Every tensor of the parts, as arrays."""
        return {name: tensor.detach().cpu().numpy() for name, tensor in state_of(self.parts()).items()}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        """Continue from `state`."""
        load_parts(self.parts(), {name: torch.from_numpy(np.array(array)) for name, array in state.items()})


@dataclass(frozen=True)
class GameRewardConfig:
    """The reward the game pays."""

    normalize_reward: bool = setting(True, "divide rewards by the running std of the discounted return")
    normalize_with: Literal["step", "rollout"] = setting(
        "step", "that std knows all returns up to a reward's own step, or up to the end of its rollout"
    )


class GameReward(RewardSource):
    """The game's own reward, scaled unless the config says raw."""

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
