"""Fixtures for tests of algorithms: tiny networks, random rollouts, and checks of weights and resuming."""

from collections.abc import Callable, Sequence
from math import log

import pytest
import torch
from torch import Tensor, nn

from expgen.algorithms.protocol import Algorithm
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig
from expgen.networks.decoupled import Decoupled, make_decoupled
from expgen.rollout.rollout import Rollout
from tests.batches import GivenBatch

CPU = torch.device("cpu")


class Toy:
    """Observations of three numbers, four actions, rollouts of 5 steps in 6 environments."""

    spec = EnvSpec("toy", (3,), "float32", 4)
    num_steps, num_envs = 5, 6

    def networks(self, seed: int = 0) -> Decoupled:
        return make_decoupled(self.spec, NetworkConfig(features=8), torch.Generator().manual_seed(seed), CPU)

    def rollout(self, seed: int = 3) -> Rollout:
        """Return a rollout with random values in every slot."""
        T, N = self.num_steps, self.num_envs
        rollout, generator = Rollout(self.spec, T, N, 0, CPU), torch.Generator().manual_seed(seed)
        for tensor in (rollout.obs, rollout.value, rollout.advantage, rollout.value_target):
            tensor.normal_(generator=generator)
        rollout.first.copy_(torch.rand(T + 1, N, generator=generator) < 0.2)
        rollout.level.copy_(torch.randint(2, (T + 1, N), generator=generator))
        rollout.action.copy_(torch.randint(4, (T + 1, N), generator=generator))
        rollout.log_prob.copy_(log(0.25) + 0.2 * torch.randn(T + 1, N, generator=generator))
        return rollout


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def weights() -> Callable[[nn.Module], Tensor]:
    """Return a copy of all weights of a module as one vector."""
    return lambda module: torch.cat([parameter.detach().flatten().clone() for parameter in module.parameters()])


@pytest.fixture
def check_exact_resume(equal: Callable[..., bool]) -> Callable[..., Algorithm]:
    """Check that an algorithm saved after the first rollout and loaded into another continues identically."""

    def check(build: Callable[[int], Algorithm], rollouts: Sequence[Rollout]) -> Algorithm:
        """`build` returns an algorithm from a seed; return the one that was saved."""
        uninterrupted, before, after = build(0), build(0), build(5)

        def learn(algorithm: Algorithm, first: int, last: int) -> None:
            for number in range(first, last):
                assert list(algorithm.update(rollouts[number], torch.Generator().manual_seed(number)))

        learn(uninterrupted, 0, len(rollouts))
        learn(before, 0, 1)
        after.load_state({name: tensor.clone() for name, tensor in before.state().items()})
        learn(after, 1, len(rollouts))
        assert equal(uninterrupted.state(), after.state()) and not equal(before.state(), after.state())
        return before

    return check


@pytest.fixture
def single() -> Callable[..., GivenBatch]:
    """Return one transition with π_old(a) = 0.4, for tests with π = (½, ½)."""

    def make(advantage: float = 1.0, value: float = 0.0, target: float = 0.0) -> GivenBatch:
        def one(number: float) -> Tensor:
            return torch.full((1, 1), number, dtype=torch.float64)

        nothing, action = torch.zeros(1, 1), torch.zeros(1, 1, dtype=torch.int64)
        facts = (one(log(0.4)), one(value), one(advantage), one(target))
        return GivenBatch(nothing, nothing, torch.zeros(1, 0), action, *facts)

    return make
