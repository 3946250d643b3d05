"""Recipes: what each --algo name builds."""

import dataclasses

import pytest
import torch

from expgen.algorithms.recipes import RECIPES, build_algorithm, recipe_of
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, policies_in
from expgen.runs.config import default_config

SPEC = EnvSpec("toy", (3,), "float32", 4)
PICTURES = EnvSpec("toy", (5, 5, 3), "uint8", 4)
CPU = torch.device("cpu")


def test_recipes_have_memory_settings_and_unknown_algorithms_are_rejected():
    assert recipe_of("ppo").network.memory == "none"
    assert recipe_of("ppo-gru").network.memory == "gru"
    with pytest.raises(InputError, match=r"--algo is 'a2c'; accepted: ppo, ppo-gru"):
        recipe_of("a2c")


def test_expgen_composes_with_every_memoryless_algorithm():
    for member in ("ppo", "daac", "idaac", "ppg"):
        recipe = recipe_of(f"expgen-{member}")
        assert (recipe.member, recipe.explorer) == (member, "maxent")
        assert (recipe.build, recipe.config) == (RECIPES[member].build, RECIPES[member].config)
    assert recipe_of("expgen") == recipe_of("expgen-ppo")
    for algo in ("expgen-ppo-gru", "expgen-maxent", "expgen-none", "expgen-", "expgen-expgen", "expgen-expgen-idaac"):
        with pytest.raises(InputError, match=f"--algo is '{algo}'.*; accepted: "):
            recipe_of(algo)


@pytest.mark.parametrize("algo", list(RECIPES))
def test_recipe_networks_depend_only_on_the_seed(algo: str):
    recipe = recipe_of(algo)
    network = dataclasses.replace(recipe.network, features=8)
    spec = PICTURES if recipe.needs_pictures else SPEC
    one, same, other = (build_algorithm(recipe, spec, network, recipe.config, seed, CPU) for seed in (3, 3, 4))
    weights = [policies_in(algorithm.policy)[-1].value_head.weight for algorithm in (one, same, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert one.policy.state_size == (8 if network.memory == "gru" else 0)


def test_build_algorithm_rejects_shuffled_minibatches_with_memory():
    recipe = recipe_of("ppo-gru")
    config = dataclasses.replace(recipe.config, minibatch_order="shuffled")
    with pytest.raises(InputError, match="--minibatch-order is shuffled but the policy has memory; accepted: columns"):
        build_algorithm(recipe, SPEC, NetworkConfig(features=8, memory="gru"), config, 0, CPU)
    build_algorithm(recipe, SPEC, NetworkConfig(features=8), config, 0, CPU)


@pytest.mark.parametrize(
    "spec", [SPEC, EnvSpec("toy", (5, 6, 3), "uint8", 4), EnvSpec("toy", (5, 5, 1), "uint8", 4)], ids=str
)
def test_ucb_drac_rejects_observations_other_than_square_colour_images(spec: EnvSpec):
    recipe = recipe_of("ucb-drac")
    with pytest.raises(InputError, match=r"toy has observations .*; accepted for this --algo: square colour images"):
        build_algorithm(recipe, spec, recipe.network, recipe.config, 0, CPU)


@pytest.mark.parametrize("algo", ["daac", "idaac"])
def test_augmentation_needs_square_colour_images(algo: str):
    recipe = recipe_of(algo)
    network, config = NetworkConfig(features=8), dataclasses.replace(recipe.config, augmentation="crop")
    build_algorithm(recipe, SPEC, network, recipe.config, 0, CPU)
    build_algorithm(recipe, PICTURES, network, config, 0, CPU)
    with pytest.raises(InputError, match=r"toy has observations \(3,\); accepted for --augmentation: square colour"):
        build_algorithm(recipe, SPEC, network, config, 0, CPU)


def test_rollout_sizes_of_compared_methods():
    configs = {algo: default_config(algo) for algo in ("ppo", "leep", "plr", "ucb-drac")}
    sizes = {algo: (config.envs, config.rollout_steps) for algo, config in configs.items()}
    assert sizes == {"ppo": (32, 512), "leep": (32, 512), "plr": (64, 256), "ucb-drac": (64, 256)}
