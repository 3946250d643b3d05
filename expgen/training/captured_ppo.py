"""CapturedPPO: `algorithms.ppo` on a GPU, each gradient step one graph.

Gathering a minibatch, the forward and backward pass, clipping and Adam are some two hundred launches; replayed as a
graph they cost the host one. The same minibatches from the same random numbers and the same checkpoints as PPO, which
it is made from.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from expgen.algorithms.ppo import PPO, Metrics
from expgen.rollout.gae import normalized
from expgen.rollout.minibatch import gather, minibatch_places
from expgen.rollout.rollout import Rollout

WARM_UPS = 3  # steps before a capture, in which libraries choose their kernels and allocate


class CapturedStep:
    """One gradient step on minibatches of one size, from `place` (written before each replay) to `metrics`."""

    def __init__(self, plain: PPO, rollout: Rollout, advantage: Tensor, size: int) -> None:
        self.plain, self.rollout, self.advantage = plain, rollout, advantage
        self.place = torch.arange(size, device=rollout.device)
        self.names: list[str] = []
        before = _copy_of(plain)
        for _ in range(WARM_UPS):
            self._step()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=torch.cuda.current_stream(), capture_error_mode="relaxed"):
            self.metrics = self._step()
        _restore(plain, before)

    def __call__(self, place: Tensor) -> Metrics:
        self.place.copy_(place)
        self.graph.replay()
        return dict(zip(self.names, self.metrics.clone().unbind(), strict=True))

    def _step(self) -> Tensor:
        batch = gather(self.rollout, self.advantage, self.place, self.plain.config.minibatch_order)
        metrics = self.plain.step(batch)
        self.names = list(metrics)
        return torch.stack(list(metrics.values()))


class CapturedPPO:
    """An Algorithm; the policy and optimiser are those of `plain`."""

    def __init__(self, plain: PPO, rollout: Rollout) -> None:
        self.plain, self.policy, self.config = plain, plain.policy, plain.config
        self.advantage = torch.zeros_like(rollout.advantage)
        self.steps: dict[int, CapturedStep] = {}  # by minibatch size; captured when first needed
        for group in plain.optimizer.param_groups:
            group["capturable"] = True

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """E epochs of minibatches; yields the metrics of each, as 0-d tensors on the device."""
        config = self.config
        self.advantage.copy_(normalized(rollout.advantage, config.advantage_epsilon))
        for _ in range(config.epochs):
            for place in minibatch_places(rollout, config.minibatches, config.minibatch_order, generator):
                if len(place) not in self.steps:
                    self.steps[len(place)] = CapturedStep(self.plain, rollout, self.advantage, len(place))
                yield self.steps[len(place)](place)

    def state(self) -> dict[str, Tensor]:
        """As PPO's."""
        return self.plain.state()

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`; the optimiser's tensors are new ones, so nothing captured holds any more."""
        self.steps.clear()
        self.plain.load_state(state)
        for group in self.plain.optimizer.param_groups:
            group["capturable"] = True


def _copy_of(plain: PPO) -> list[Tensor]:
    """The weights, and the optimiser's tensors if it has taken a step already."""
    return [tensor.clone() for tensor in _tensors(plain)]


@torch.no_grad()
def _restore(plain: PPO, before: list[Tensor]) -> None:
    """Undo the steps since `before`, in place; an optimiser that was fresh then is all zeros."""
    now = _tensors(plain)
    for tensor, old in zip(now, before, strict=False):
        tensor.copy_(old)
    for tensor in now[len(before) :]:
        tensor.zero_()


def _tensors(plain: PPO) -> list[Tensor]:
    weights = list(plain.policy.parameters())
    moments = (plain.optimizer.state.get(parameter, {}) for parameter in weights)
    return [*(parameter.detach() for parameter in weights), *(tensor for entry in moments for tensor in entry.values())]
