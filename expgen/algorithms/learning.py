"""What policy-gradient algorithms share: settings, with the defaults that most have, and the walk over a rollout."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from expgen.rollout.gae import normalized
from expgen.rollout.minibatch import Minibatch, Order, everything, minibatch_places
from expgen.rollout.rollout import Rollout
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


def passes(rollout: Rollout, config: LearningConfig, generator: torch.Generator) -> Iterator[tuple[Minibatch, Tensor]]:
    """The rollout with its advantages normalised, once for each minibatch of each epoch, and where that lies in it."""
    whole = everything(rollout, normalized(rollout.advantage, config.advantage_epsilon))
    for _ in range(config.epochs):
        for place in minibatch_places(rollout, config.minibatches, config.minibatch_order, generator):
            yield whole, place
