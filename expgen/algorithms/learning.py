"""The settings that policy-gradient algorithms share, with the defaults that most have."""

from dataclasses import dataclass

from expgen.rollout.minibatch import Order
from expgen.settings import setting


@dataclass(frozen=True)
class LearningConfig:
    """How advantages are estimated, how a rollout is walked, and the clipped policy loss; each algorithm adds its own.

    Where an algorithm's default is another, its config says so with `settings.own_default`.
    """

    gamma: float = setting(0.999, "discount γ", low=0, high=1)
    gae_lambda: float = setting(0.95, "λ of generalised advantage estimation", low=0, high=1)
    epochs: int = setting(1, "passes over each rollout", low=1)
    minibatches: int = setting(8, "optimiser steps a pass", low=1)
    minibatch_order: Order = setting("columns", "minibatches of whole environments, or of shuffled transitions")
    learning_rate: float = setting(5e-4, "Adam's step size", low=0)
    adam_epsilon: float = setting(1e-5, "Adam's ε", low=0)
    clip: float = setting(0.2, "clip range of the policy ratio", low=0)
    entropy_coef: float = setting(0.01, "weight of the entropy bonus")
    advantage_epsilon: float = setting(1e-8, "added to the std that advantages are divided by", low=0)
