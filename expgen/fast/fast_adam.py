"""Optimisers on a GPU: Adam's step as one kernel, its count of steps beside the weights, so that graphs may hold it."""

from collections.abc import Iterator

from torch.optim import Adam

from expgen.algorithms.daac import Critic
from expgen.algorithms.policy_gradient import Descent
from expgen.algorithms.protocol import Algorithm


def accelerate_optimizers(algorithm: Algorithm) -> None:
    """For an algorithm on a GPU that has not learnt yet: its optimisers begin anew."""
    for descent in descents_in(algorithm):
        rate, epsilon = descent.adam.defaults["lr"], descent.adam.defaults["eps"]
        descent.adam = Adam(descent.parameters, rate, eps=epsilon, fused=True, capturable=True)


def descents_in(owner: Algorithm | Critic) -> Iterator[Descent]:
    """Every Descent among the parts of an algorithm."""
    for part in owner.parts().values():
        if isinstance(part, Descent):
            yield part
        elif isinstance(part, Critic):
            yield from descents_in(part)
