"""r_total (Eq. 9): the intrinsic and the game's reward in one, for the ablation that trains a single policy on both.

The paper does not say how r_ext is scaled; we take it as the game pays it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from numpy import ndarray
from torch import Tensor

from expgen.reward.knn import KnnConfig, KnnReward
from expgen.reward.source import RewardSource
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


@dataclass(frozen=True)
class MixtureConfig(KnnConfig):
    """All that r_I can be told, and its weight; 0.1 scored best in the paper, with γ = 0.5 on Maze."""

    beta: float = setting(0.1, "weight β of r_I in r_total; the game's own reward has 1 − β", low=0, high=1)


class MixedReward(RewardSource):
    """Owns the intrinsic reward it mixes in."""

    def __init__(self, config: MixtureConfig, num_envs: int) -> None:
        self.beta, self.end_value = config.beta, config.end_value
        self.knn = KnnReward(config, num_envs)
        self.intrinsic = self.knn.intrinsic

    def __call__(self, rollout: Rollout) -> Tensor:
        """r_total = β r_I + (1 − β) r_ext, `[T, N]`."""
        mixed = self.beta * self.knn(rollout) + (1 - self.beta) * rollout.game_reward
        self.intrinsic = self.knn.intrinsic
        return mixed

    def state(self) -> dict[str, ndarray]:
        """That of r_I; the game's reward has none."""
        return self.knn.state()

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        """Continue from `state`."""
        self.knn.load_state(state)
