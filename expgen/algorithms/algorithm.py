"""What the trainer knows of an algorithm, and what each `--algo` name stands for."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from expgen.algorithms.leep import Leep, LeepConfig, SubsetLevels
from expgen.algorithms.plr import LevelReplay, PlrConfig
from expgen.algorithms.ppo import PPO, Metrics, PPOConfig
from expgen.algorithms.ucb_drac import UcbDrac, UcbDracConfig
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, check_choice
from expgen.networks.actor_critic import NetworkConfig, Policy, fresh_network
from expgen.networks.joint import JointPolicy
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.reward.mixture import MixedReward, MixtureConfig
from expgen.reward.source import GameReward, GameRewardConfig, RewardSource
from expgen.rollout.level_choice import LevelChooser
from expgen.rollout.rollout import Rollout


class Algorithm(Protocol):
    """Owns its networks and optimisers, nothing else. Its config says `gamma` and `gae_lambda`."""

    policy: Policy
    config: Any

    def update(self, rollout: Rollout, generator: torch.Generator) -> Iterator[Metrics]:
        """Learn from one rollout; one item per minibatch."""

    def state(self) -> dict[str, Tensor]:
        """Weights under `policy.…`, then whatever else a resumed run needs."""

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`."""


@dataclass(frozen=True)
class Recipe:
    """An algorithm's name spelled out: which network learns how from which reward."""

    summary: str
    build: Callable[[Policy, Any], Algorithm]
    config: Any
    network: NetworkConfig
    reward: Any
    build_reward: Callable[[Any, int], RewardSource]
    needs_full_view: bool = False  # r_I is measured where the agent moves and not the picture
    explorer: str | None = None  # the algorithm of the explorer trained beside these, its members
    build_policy: Callable[[EnvSpec, NetworkConfig, Any], Any] = lambda spec, network, config: Policy(spec, network)
    build_levels: Callable[[Any, LevelSet, int, int], LevelChooser] | None = None  # config, levels, environments, seed
    needs_pictures: bool = False  # square ones, in colour
    run: Mapping[str, Any] = field(default_factory=dict)  # how the run differs from TrainConfig's defaults


# What PPO's successors play before each update: as many steps as ExpGen's PPO, of twice the environments.
WIDE = {"envs": 64, "rollout_steps": 256}
RECIPES = {
    "ppo": Recipe(
        "PPO without memory: the member of the paper's ensemble",
        PPO, PPOConfig(minibatch_order="shuffled"), NetworkConfig(), GameRewardConfig(), GameReward,
    ),
    "ppo-gru": Recipe(
        "PPO with a GRU",
        PPO, PPOConfig(), NetworkConfig(memory="gru"), GameRewardConfig(), GameReward,
    ),
    "maxent": Recipe(
        "the explorer: PPO with a GRU on the intrinsic reward alone",
        PPO, PPOConfig(gamma=0.9), NetworkConfig(memory="gru"), KnnConfig(), KnnReward, needs_full_view=True,
    ),
    "mixed": Recipe(
        "PPO with a GRU on a weighted sum of the intrinsic and the game's reward",
        PPO, PPOConfig(gamma=0.5), NetworkConfig(memory="gru"), MixtureConfig(), MixedReward, needs_full_view=True,
    ),
    "leep": Recipe(
        "LEEP: members on subsets of the levels, joined by their maximum",
        Leep, LeepConfig(), NetworkConfig(extra_layers=2), GameRewardConfig(), GameReward,
        build_policy=lambda spec, network, config: JointPolicy(spec, network, config.subsets),
        build_levels=SubsetLevels,
    ),
    "plr": Recipe(
        "PPO on levels replayed by what is left to learn from them",
        PPO, PlrConfig(), NetworkConfig(), GameRewardConfig(), GameReward,
        build_levels=LevelReplay, run=WIDE,
    ),
    "ucb-drac": Recipe(
        "PPO that says the same of augmented pictures; a bandit picks the augmentation",
        UcbDrac, UcbDracConfig(), NetworkConfig(), GameRewardConfig(), GameReward,
        needs_pictures=True, run=WIDE,
    ),
}  # fmt: skip
RECIPES["expgen"] = replace(RECIPES["ppo"], summary="ExpGen: PPO members and an explorer", explorer="maxent")


def recipe_of(algo: str) -> Recipe:
    """The recipe that `--algo` names."""
    return RECIPES[check_choice("--algo", algo, RECIPES)]


def build_policy(
    recipe: Recipe,
    spec: EnvSpec,
    network: NetworkConfig,
    config: Any,
    generator: torch.Generator,
    device: torch.device,
) -> Policy:
    """What plays, with fresh weights."""
    return fresh_network(lambda: recipe.build_policy(spec, network, config), generator, device)


def build_algorithm(
    recipe: Recipe, spec: EnvSpec, network: NetworkConfig, config: Any, seed: int, device: torch.device
) -> Algorithm:
    """A learner's networks and optimisers, fresh from `seed`."""
    if network.memory != "none" and getattr(config, "minibatch_order", "columns") != "columns":
        raise InputError("--minibatch-order is shuffled but the policy has memory; accepted: columns")
    if recipe.needs_pictures and (spec.obs_dtype != "uint8" or spec.obs_shape != (*spec.obs_shape[:1] * 2, 3)):
        what = f"{spec.name} has observations {spec.obs_shape}"
        raise InputError(f"{what}; accepted for this --algo: square pictures in colour")
    policy = build_policy(recipe, spec, network, config, torch.Generator().manual_seed(seed), device)
    return recipe.build(policy, config)
