"""The seam that faster ways of running steps go through: every algorithm has it, uses it, and says when to forget."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from expgen.algorithms.algorithm import RECIPES, Algorithm, HasCritic, build_algorithm
from expgen.algorithms.runner import AsWritten, HasRunner
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import NetworkConfig
from expgen.rollout.rollout import Rollout

SPEC, CPU = EnvSpec("toy", (6, 6, 3), "uint8", 4), torch.device("cpu")
NUM_STEPS, NUM_ENVS = 4, 8
LEARNERS = [name for name, recipe in RECIPES.items() if recipe.member is None]


class Recorder(AsWritten):
    """Carries out steps as they are written, and keeps what it was asked."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.num_forgotten = 0

    def __call__(self, function: Callable[..., Any], *inputs: Any) -> Any:
        self.results.append(super().__call__(function, *inputs))
        return self.results[-1]

    def forget(self) -> None:
        self.num_forgotten += 1


def learner(algo: str, seed: int = 0) -> Any:
    recipe = RECIPES[algo]
    network = NetworkConfig(features=8, memory=recipe.network.memory)
    return build_algorithm(recipe, SPEC, network, recipe.config, seed, CPU)


def rollout_for(algorithm: Algorithm) -> Rollout:
    generator = torch.Generator().manual_seed(1)
    rollout = Rollout(SPEC, NUM_STEPS, NUM_ENVS, algorithm.policy.state_size, CPU)
    rollout.obs.copy_(torch.randint(256, rollout.obs.shape, generator=generator))
    rollout.first[0] = True
    for tensor in (rollout.advantage, rollout.value_target):
        tensor.normal_(generator=generator)
    rollout.action.copy_(torch.randint(4, rollout.action.shape, generator=generator))
    rollout.log_prob.fill_(-1.386)
    return rollout


def learn(algorithm: Any) -> list[Any]:
    rollout = rollout_for(algorithm)
    if isinstance(algorithm, HasCritic):
        algorithm.judge(rollout)
    return list(algorithm.update(rollout, torch.Generator().manual_seed(2)))


def test_as_written_just_calls() -> None:
    assert AsWritten()(lambda *inputs: inputs, 1, "b") == (1, "b")
    with pytest.raises(ZeroDivisionError):
        AsWritten()(lambda: 1 / 0)


@pytest.mark.parametrize("algo", LEARNERS)
def test_every_gradient_step_goes_through_the_runner(algo: str) -> None:
    """A step that went past it would not be part of a graph, and slow without anyone noticing."""
    algorithm = learner(algo)
    assert isinstance(algorithm, HasRunner)
    algorithm.run = recorder = Recorder()
    metrics = learn(algorithm)
    steps = [result for result in recorder.results if isinstance(result, dict)]
    assert len(steps) == len(metrics) > 0
    for step, told in zip(steps, metrics, strict=True):
        assert step.keys() <= told.keys() and all(torch.equal(step[name], told[name]) for name in step)


@pytest.mark.parametrize("algo", LEARNERS)
def test_loading_weights_tells_the_runner_to_forget(algo: str) -> None:
    """Graphs captured over the old tensors would go on training those."""
    algorithm, other = learner(algo), learner(algo, seed=1)
    learn(other)
    algorithm.run = recorder = Recorder()
    algorithm.load_state(other.state())
    assert recorder.num_forgotten == 1
    state = algorithm.state()
    assert all(torch.equal(tensor, state[name]) for name, tensor in other.state().items())
