"""PLR, prioritized level replay (Jiang, Grefenstette and Rocktäschel 2021, arXiv 2010.03934): PPO with level replay.

Only the choice of levels (`rollout.level_replay`) differs from PPO.
"""

from dataclasses import dataclass

from expgen.algorithms.ppo import PPOConfig
from expgen.rollout.level_replay import ReplayConfig
from expgen.rollout.minibatch import Order
from expgen.settings import changed_default


@dataclass(frozen=True)
class PlrConfig(ReplayConfig, PPOConfig):
    """PPO's settings with the PLR authors' values, and those of the level sampler."""

    minibatch_order: Order = changed_default(PPOConfig, "minibatch_order", "shuffled")
    advantage_epsilon: float = changed_default(PPOConfig, "advantage_epsilon", 1e-5)
