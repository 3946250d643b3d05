"""Accelerate an algorithm on a GPU: fused Adam, and methods recorded as CUDA graphs.

RECORDED lists the methods that an algorithm calls once per minibatch and that meet the conditions of `Graphs`. Other
algorithms run unchanged.
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
    IDAAC: ("step", "values", "critic.step"),
    PPG: ("step", "values", "logits", "auxiliary_step"),
    Leep: ("step", "log_max_of_others"),
    UcbDrac: ("step",),
}


def accelerate_optimizers(algorithm: Algorithm) -> None:
    """Replace each Adam by a fused, capturable one with new state; the algorithm must be on a GPU and untrained."""
    for descent in descents_in(algorithm):
        rate, epsilon = descent.adam.defaults["lr"], descent.adam.defaults["eps"]
        descent.adam = Adam(descent.parameters, rate, eps=epsilon, fused=True, capturable=True)


def descents_in(algorithm: Algorithm) -> list[Descent]:
    """Return every Descent among the algorithm's parts."""
    return [part for part in algorithm.parts().values() if isinstance(part, Descent)]


def record_steps(algorithm: Algorithm, capture: Capture = capture_on_gpu) -> Graphs:
    """Replace the methods of `algorithm` in RECORDED by recorded ones; return the graphs."""
    graphs = Graphs(algorithm, capture)
    for path in RECORDED.get(type(algorithm), ()):
        owner, _, name = path.rpartition(".")
        holder = attrgetter(owner)(algorithm) if owner else algorithm
        setattr(holder, name, partial(graphs, getattr(holder, name)))
    load_state = algorithm.load_state

    def clear_and_load(state: Mapping[str, Tensor]) -> None:
        graphs.recordings.clear()  # loading replaces the optimiser's tensors
        load_state(state)

    setattr(algorithm, "load_state", clear_and_load)  # noqa: B010
    return graphs
