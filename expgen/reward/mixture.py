"""r_total (Eq. 9): intrinsic plus game reward, for the ablation that trains a single policy on both.

The paper does not say how r_ext is scaled; we use the game's raw reward, less the cost of deaths if there is one.
"""

from dataclasses import dataclass

from torch import Tensor

from expgen.reward.knn import KnnConfig, KnnReward
from expgen.reward.source import death_cost_setting, subtract_deaths
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


@dataclass(frozen=True)
class MixtureConfig(KnnConfig):
    """Settings of r_I, and its weight; β = 0.1 scored best in the paper, with γ = 0.5 on Maze."""

    beta: float = setting(0.1, "weight β of r_I in r_total; the game's reward has weight 1 − β", low=0, high=1)
    death_cost: float = death_cost_setting()


class MixedReward(KnnReward):
    """r_I mixed with the game's reward; `intrinsic` and the reported return are r_I alone."""

    config: MixtureConfig

    def __call__(self, rollout: Rollout) -> Tensor:
        """r_total = β r_I + (1 − β) r_ext, `[T, N]`."""
        beta, cost = self.config.beta, self.config.death_cost
        reward = subtract_deaths(rollout.game_reward, rollout.first, rollout.survived, cost)
        return beta * super().__call__(rollout) + (1 - beta) * reward
