"""accelerate_optimizers replaces every optimiser of an algorithm and keeps its settings."""

import dataclasses

import pytest
import torch

from expgen.algorithms.policy_gradient import Descent
from expgen.algorithms.recipes import RECIPES, build_algorithm, recipe_of
from expgen.envs.vec_env import EnvSpec
from expgen.fast.recorded_steps import accelerate_optimizers, descents_in

SPEC = EnvSpec("toy", (16, 16, 3), "uint8", 5)
OWN = {"daac": 2, "idaac": 3, "ppg": 2, "leep": 4, "expgen-idaac": 3}  # the others have one


@pytest.mark.parametrize("algo", RECIPES)
def test_descents_in_finds_every_optimizer(algo: str) -> None:
    recipe = recipe_of(algo)
    network = dataclasses.replace(recipe.network, features=8)
    algorithm = build_algorithm(recipe, SPEC, network, recipe.config, 0, torch.device("cpu"))
    found = list(descents_in(algorithm))
    assert len(found) == OWN.get(algo, 1) and all(isinstance(descent, Descent) for descent in found)
    moved = {id(parameter) for descent in found for parameter in descent.parameters}
    networks = [algorithm.policy, *([algorithm.value_network] if algorithm.value_network is not None else [])]
    assert moved >= {id(parameter) for module in networks for parameter in module.parameters()}


def test_accelerated_optimizers_keep_learning_rate_and_epsilon() -> None:
    recipe = recipe_of("ppg")
    config = dataclasses.replace(recipe.config, learning_rate=3e-4, aux_learning_rate=7e-4, adam_epsilon=1e-3)
    network = dataclasses.replace(recipe.network, features=8)
    algorithm = build_algorithm(recipe, SPEC, network, config, 0, torch.device("cpu"))
    accelerate_optimizers(algorithm)
    groups = [group for descent in descents_in(algorithm) for group in descent.adam.param_groups]
    assert [(group["lr"], group["eps"]) for group in groups] == [(3e-4, 1e-3), (7e-4, 1e-3)]
    assert all(group["fused"] and group["capturable"] for group in groups)
