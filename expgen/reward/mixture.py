"""r_total (Eq. 9): intrinsic plus game reward, for the ablation that trains a single policy on both.

The paper does not say how r_ext is scaled; we use the game's raw reward.
"""

from dataclasses import dataclass

from torch import Tensor

from expgen.reward.knn import KnnConfig, KnnReward
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


@dataclass(frozen=True)
class MixtureConfig(KnnConfig):
    """Settings of r_I, and its weight; β = 0.1 scored best in the paper, with γ = 0.5 on Maze."""

    beta: float = setting(0.1, "weight β of r_I in r_total; the game's reward has weight 1 − β", low=0, high=1)


class MixedReward(KnnReward):
    """r_I mixed with the game's reward; `intrinsic` and the reported return are r_I alone."""

    config: MixtureConfig

    def __call__(self, rollout: Rollout) -> Tensor:
        """r_total = β r_I + (1 − β) r_ext, `[T, N]`."""
        beta = self.config.beta
        return beta * super().__call__(rollout) + (1 - beta) * rollout.game_reward
