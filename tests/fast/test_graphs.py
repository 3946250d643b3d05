"""Replayed steps of every algorithm equal plain steps: bit by bit on the CPU, where a fake graph calls the recorded
function again on its buffers, and within rounding on a GPU."""

import copy
import dataclasses
import gc
import weakref
from collections.abc import Callable
from math import log
from typing import Any

import pytest
import torch
from torch import Tensor

from expgen.algorithms.recipes import RECIPES, build_algorithm, recipe_of
from expgen.envs.vec_env import EnvSpec
from expgen.fast.accelerate import accelerate
from expgen.fast.fast_networks import accelerate_networks, is_capturable
from expgen.fast.graphs import Graphs
from expgen.fast.recorded_steps import accelerate_optimizers, record_steps
from expgen.rollout.minibatch import Minibatch
from expgen.rollout.rollout import Rollout
from expgen.runs.make_config import make_config
from expgen.runs.plan import build_learner, plans_of
from expgen.training.resources import Resources

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SPEC = EnvSpec("toy", (16, 16, 3), "uint8", 5)
T, N = 6, 8
ALGORITHMS: dict[str, dict[str, Any]] = {  # settings with which three updates use every kind of step
    "ppo": {},
    "ppo-gru": {},
    "plr": {},
    "daac": {"value_epochs": 2, "value_every": 2},
    "idaac": {"value_epochs": 2, "value_every": 2, "order_hidden": 3, "augmentation": "crop"},
    "ppg": {"policy_phases": 2, "aux_epochs": 2, "aux_columns": 3},
    "ucb-drac": {"epochs": 2},
    "leep": {"epochs": 2, "subsets": 2},
}


def built(algo: str, device: str = "cpu", encoder: str = "small", **changes: Any) -> Any:
    recipe = recipe_of(algo)
    config = dataclasses.replace(recipe.config, **{"minibatches": 3, **ALGORITHMS[algo], **changes})
    network = dataclasses.replace(recipe.network, features=32, encoder=encoder)
    return build_algorithm(recipe, SPEC, network, config, 0, torch.device(device))


def fill(rollout: Rollout, seed: int) -> None:
    """Fill `rollout` in place with random transitions, equal on every device."""
    generator = torch.Generator().manual_seed(seed)
    rollout.obs.copy_(torch.randint(256, rollout.obs.shape, generator=generator))
    rollout.action.copy_(torch.randint(SPEC.num_actions, rollout.action.shape, generator=generator))
    rollout.first.copy_(torch.rand(rollout.first.shape, generator=generator) < 0.2)
    rollout.level.copy_(torch.randint(2, rollout.level.shape, generator=generator))
    for tensor in (rollout.value, rollout.advantage, rollout.value_target, rollout.state):
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    rollout.log_prob.fill_(-log(SPEC.num_actions))


def updated(algorithm: Any, rollout: Rollout, seed: int) -> list[dict[str, Tensor]]:
    """Run one update and return its metrics."""
    fill(rollout, seed)
    algorithm.compute_values(rollout)
    return list(algorithm.update(rollout, torch.Generator(rollout.device).manual_seed(seed)))


class FakeGraph:
    """A capture function for the CPU: replay calls the function again on the same buffers."""

    def __init__(self, algorithm: Any) -> None:
        self.algorithm, self.replays = algorithm, 0

    def __call__(self, body: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
        body()
        output = body()
        addresses = self.optimiser_addresses()

        def replay() -> None:
            now = self.optimiser_addresses()
            assert all(now[name] == address for name, address in addresses.items())  # a CUDA graph needs fixed memory
            output.copy_(body())
            self.replays += 1

        return output, replay

    def optimiser_addresses(self) -> dict[str, int]:
        return {name: tensor.data_ptr() for name, tensor in self.algorithm.state().items() if "adam" in name}


def capture_without_replay(body: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
    """A capture function whose replay does nothing."""
    return body(), lambda: None


def graphs_of(algorithm: Any) -> Graphs:
    """Return the graphs that replay the algorithm's steps."""
    return algorithm.step.func


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_replayed_steps_equal_plain_steps(algo: str, equal: Any) -> None:
    """Compares metrics, weights and moments over several updates and a checkpoint, with two minibatch sizes."""
    plain, graphed = built(algo), built(algo)
    rollouts = [Rollout(SPEC, T, N, plain.policy.state_size, torch.device("cpu")) for _ in range(2)]
    capture = FakeGraph(graphed)
    graphs = record_steps(graphed, capture)
    for seed in range(4):
        exact, found = updated(plain, rollouts[0], seed), updated(graphed, rollouts[1], seed)
        assert len(exact) == len(found) and all(equal(*pair) for pair in zip(exact, found, strict=True))
        assert torch.equal(rollouts[0].value, rollouts[1].value)
        assert equal(plain.state(), graphed.state())
        if seed == 2:
            for algorithm in (plain, graphed):
                algorithm.load_state({name: tensor.clone() for name, tensor in algorithm.state().items()})
            assert not graphs.recordings
    num_steps = sum("loss" in row or "value_loss" in row or "aux_loss" in row for row in found)
    assert capture.replays > 4 * num_steps / 2 > 0
    assert 0 < len(graphs.recordings) <= 2 * {"ppg": 4, "leep": 4}.get(algo, 3)  # by kind, member and size


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_recording_does_not_change_the_algorithm(algo: str) -> None:
    """If replay does nothing, an update changes no weights, and the moments of a new optimiser stay zero."""
    algorithm = built(algo)
    rollout = Rollout(SPEC, T, N, algorithm.policy.state_size, torch.device("cpu"))
    record_steps(algorithm, capture_without_replay)
    before = {name: tensor.clone() for name, tensor in algorithm.state().items()}
    updated(algorithm, rollout, 0)
    state = algorithm.state()
    trained = [name for name in before if name.startswith(("policy.", "value.", "critic.network.", "classifier."))]
    assert all(torch.equal(state[name], before[name]) for name in trained)
    moments = [tensor for name, tensor in state.items() if "adam" in name]
    assert moments and not any(tensor.any() for tensor in moments)


def test_recording_keeps_the_state_of_a_used_optimiser() -> None:
    algorithm = built("ppo")
    rollout = Rollout(SPEC, T, N, 0, torch.device("cpu"))
    updated(algorithm, rollout, 0)
    before = {name: tensor.clone() for name, tensor in algorithm.state().items()}
    record_steps(algorithm, capture_without_replay)
    updated(algorithm, rollout, 1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in algorithm.state().items())


@pytest.mark.parametrize("algo", [name for name, recipe in RECIPES.items() if recipe.member is None])
def test_every_gradient_step_of_every_algorithm_is_replayed(algo: str) -> None:
    """A step that is not recorded would be slow without any error."""
    recipe = recipe_of(algo)
    network = dataclasses.replace(recipe.network, features=8, encoder="small")
    algorithm = build_algorithm(recipe, SPEC, network, recipe.config, 0, torch.device("cpu"))
    replays: list[int] = []

    def capture(body: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], None]]:
        output = body()

        def replay() -> None:
            replays.append(output.dim())
            output.copy_(body())

        return output, replay

    record_steps(algorithm, capture)
    metrics = updated(algorithm, Rollout(SPEC, T, N, algorithm.policy.state_size, torch.device("cpu")), 0)
    num_values = recipe.config.minibatches if algorithm.value_network is not None else 0  # values come in parts
    assert metrics and replays.count(1) == len(metrics) + num_values  # [metrics] of each step, V [B] of each part


def test_recorded_function_gathers_from_the_rollout_and_copies_other_tensors() -> None:
    algorithm, rollout = built("ppo"), Rollout(SPEC, T, N, 0, torch.device("cpu"))
    graphs = Graphs(algorithm, FakeGraph(algorithm))

    def picked(batch: Minibatch, offset: Tensor, scale: int) -> Tensor:
        return scale * (batch.value[0] + batch.advantage[0]) + offset

    def batch_of(advantage: float, *row: int) -> Minibatch:
        return Minibatch(rollout, torch.full((T, N), advantage), torch.tensor(row), "shuffled")

    rollout.value.copy_(torch.arange(N))
    batch = batch_of(1.0, 3, 1)
    first = graphs(picked, batch, torch.zeros(2), 10)
    (recording,) = graphs.recordings.values()
    addresses = {tensor.data_ptr() for tensor in recording.buffers}
    assert len(addresses) == 3 and not addresses & {batch.index.data_ptr(), batch.rollout_advantage.data_ptr()}
    rollout.value.add_(1)
    assert graphs(picked, batch_of(2.0, 0, 2), torch.ones(2), 10).tolist() == [31, 51]
    assert first.tolist() == [40, 20]  # not overwritten by the later call
    assert len(graphs.recordings) == 1
    graphs(picked, dataclasses.replace(batch, rollout=copy.deepcopy(rollout)), torch.ones(2), 10)
    assert len(graphs.recordings) == 2  # another rollout has other memory


def test_recording_keeps_its_rollout_alive() -> None:
    algorithm, rollout = built("ppo"), Rollout(SPEC, T, N, 0, torch.device("cpu"))
    record_steps(algorithm, FakeGraph(algorithm))
    updated(algorithm, rollout, 0)
    obs = weakref.ref(rollout.obs)
    del rollout
    gc.collect()
    assert obs() is not None


def test_each_function_shape_and_constant_has_its_own_recording() -> None:
    algorithm = built("ppo")
    graphs = Graphs(algorithm, FakeGraph(algorithm))
    calls = [(torch.add, 1, 1), (torch.add, 1, 2), (torch.add, 2, 1), (torch.mul, 1, 1), (torch.mul, 1, 1)]
    for function, size, number in calls:
        found = graphs(function, torch.full((size,), 3.0), number)
        assert torch.equal(found, function(torch.full((size,), 3.0), number))
    assert len(graphs.recordings) == 4


def test_accelerate_records_nothing_on_the_cpu() -> None:
    algorithm = built("daac")
    accelerated, _ = accelerate(algorithm, Rollout(SPEC, T, N, 0, torch.device("cpu")))
    assert accelerated is algorithm and "step" not in vars(algorithm) and "step" not in vars(algorithm.critic)


def weights(algorithm: Any) -> Tensor:
    kept = ("policy.", "value.", "critic.network.", "classifier.")
    return torch.cat([tensor.flatten() for name, tensor in algorithm.state().items() if name.startswith(kept)])


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("algo", ALGORITHMS)
@pytest.mark.parametrize("minibatches", [3, 4])  # of two sizes, or all of one
def test_graphs_on_a_gpu_match_plain_steps(algo: str, minibatches: int) -> None:
    """Equal metrics and weights over updates and a checkpoint, up to the order of summation."""
    plain = built(algo, "cuda", "impala", minibatches=minibatches)
    graphed = copy.deepcopy(plain)
    for algorithm in (plain, graphed):
        accelerate_networks(algorithm.policy)
        accelerate_optimizers(algorithm)
        if algorithm.value_network is not None:
            accelerate_networks(algorithm.value_network)
    assert is_capturable(graphed.policy)
    rollouts = [Rollout(SPEC, T, N, plain.policy.state_size, torch.device("cuda")) for _ in range(2)]
    record_steps(graphed)
    before = weights(plain).clone()
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        for seed in range(3):
            exact, found = updated(plain, rollouts[0], seed), updated(graphed, rollouts[1], seed)
            assert [row.keys() for row in found] == [row.keys() for row in exact]
            for name in found[-1]:
                torch.testing.assert_close(found[-1][name], exact[-1][name], atol=1e-2, rtol=1e-2)
            if seed == 1:
                graphed.load_state({name: tensor.clone() for name, tensor in graphed.state().items()})
        torch.cuda.synchronize()
    moved = (weights(plain) - before).norm()
    assert moved > 0 and (weights(graphed) - weights(plain)).norm() < 0.05 * moved


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("algo", ALGORITHMS)
def test_learner_on_a_gpu_replays_its_steps(algo: str, small: Any) -> None:
    """With our kernels and streams: weights change and stay finite, and nothing is recorded twice."""
    settings = {name: value for name, value in small.settings.items() if name not in ("device", "epochs")}
    images = {"options": {"max_cells": 20}, "encoder": "impala", "features": 32, "algo": algo, **ALGORITHMS[algo]}
    config = make_config(**{**settings, "steps": 4 * small.update_steps, **images})
    resources = Resources(torch.device("cuda"), torch_threads=1, env_threads=1, updates_at_once=1)
    learner = build_learner(config, plans_of(config)[0], resources)
    graphs, before = graphs_of(learner.algorithm), weights(learner.algorithm).clone()
    assert isinstance(graphs, Graphs)
    for _ in range(4):
        list(learner.iterate())
    recordings = dict(graphs.recordings)
    for _ in range(4):
        list(learner.iterate())
    assert recordings and graphs.recordings == recordings
    after = weights(learner.algorithm)
    assert after.isfinite().all() and (after - before).norm() > 0
    learner.close()
