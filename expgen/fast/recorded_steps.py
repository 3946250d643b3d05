"""What an algorithm gains on a GPU, from outside: Adam as one kernel, and steps that are recorded as graphs.

Recorded are the methods that an algorithm calls once a minibatch, each as `Graphs` wants it. An algorithm that is not
in the table runs as it is written.
"""

from collections.abc import Mapping
from functools import partial
from operator import attrgetter

from torch import Tensor
from torch.optim import Adam

from expgen.algorithms.daac import DAAC
from expgen.algorithms.idaac import IDAAC
from expgen.algorithms.leep import Leep
from expgen.algorithms.policy_gradient import Descent
from expgen.algorithms.ppg import PPG
from expgen.algorithms.ppo import PPO
from expgen.algorithms.protocol import Algorithm
from expgen.algorithms.ucb_drac import UcbDrac
from expgen.fast.graphs import Capture, Graphs, capture_on_gpu

RECORDED: dict[type[Algorithm], tuple[str, ...]] = {
    PPO: ("step",),
    DAAC: ("step", "values", "critic.step"),
    IDAAC: ("step", "values", "daac.critic.step"),
    PPG: ("step", "values", "logits", "auxiliary_step"),
    Leep: ("step", "log_max_of_others"),
    UcbDrac: ("step",),
}


def accelerate_optimizers(algorithm: Algorithm) -> None:
    """Adam's step as one kernel, its count of steps beside the weights, so that graphs may hold it.

    For an algorithm on a GPU that has not learnt yet: its optimisers begin anew.
    """
    for descent in descents_in(algorithm):
        rate, epsilon = descent.adam.defaults["lr"], descent.adam.defaults["eps"]
        descent.adam = Adam(descent.parameters, rate, eps=epsilon, fused=True, capturable=True)


def descents_in(algorithm: Algorithm) -> list[Descent]:
    """Every Descent among the parts of an algorithm."""
    return [part for part in algorithm.parts().values() if isinstance(part, Descent)]


def record_steps(algorithm: Algorithm, capture: Capture = capture_on_gpu) -> Graphs:
    """Record and replay the methods of `algorithm` that the table names; returns the graphs."""
    graphs = Graphs(algorithm, capture)
    for path in RECORDED.get(type(algorithm), ()):
        owner, _, name = path.rpartition(".")
        holder = attrgetter(owner)(algorithm) if owner else algorithm
        setattr(holder, name, partial(graphs, getattr(holder, name)))
    load_state = algorithm.load_state

    def forget_and_load(state: Mapping[str, Tensor]) -> None:
        graphs.recordings.clear()  # an optimiser's tensors are others once they have been loaded
        load_state(state)

    setattr(algorithm, "load_state", forget_and_load)  # noqa: B010
    return graphs
