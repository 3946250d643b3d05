"""Recipes: the network, loss, reward and settings that each `--algo` name stands for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from expgen.algorithms.daac import DAAC, DAACConfig
from expgen.algorithms.idaac import IDAAC, IDAACConfig
from expgen.algorithms.leep import Leep, LeepConfig, SubsetLevels
from expgen.algorithms.plr import PlrConfig
from expgen.algorithms.ppg import PPG, PPGConfig
from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.algorithms.protocol import Algorithm
from expgen.algorithms.ucb_drac import UcbDrac, UcbDracConfig
from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import NetworkConfig, Policy, fresh_network
from expgen.networks.decoupled import make_decoupled
from expgen.networks.joint import JointPolicy
from expgen.plugins import find, load_entry_points
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.reward.mixture import MixedReward, MixtureConfig
from expgen.reward.source import GameReward, GameRewardConfig, RewardSource
from expgen.rollout.level_choice import LevelChooser
from expgen.rollout.level_replay import LevelReplay, ReplayConfig


@dataclass(frozen=True)
class Recipe:
    """How to build the learner of an `--algo` name."""

    summary: str
    build: Callable[[Any, Any], Algorithm]  # (policy or networks, config) → algorithm
    config: Any
    network: NetworkConfig = NetworkConfig()
    reward: Any = GameRewardConfig()
    build_reward: Callable[[Any, int], RewardSource] = GameReward
    needs_full_view: bool = False  # r_I is measured on the uncentred view, in which the agent moves
    make_networks: Callable[[EnvSpec, NetworkConfig, torch.Generator, torch.device], Any] | None = None  # not a Policy
    build_policy: Callable[[EnvSpec, NetworkConfig, Any], Any] = lambda spec, network, config: Policy(spec, network)
    build_levels: Callable[[Any, LevelSet, int, int], LevelChooser] | None = None  # config, levels, num_envs, seed
    splits_envs: bool = False  # each member has its own environments
    needs_pictures: bool = False  # observations must be square colour images
    run: Mapping[str, Any] = field(default_factory=dict)  # changes to TrainConfig's defaults
    member: str | None = None  # of an ensemble: the `--algo` that trains its members
    explorer: str | None = None  # of an ensemble: the `--algo` that trains its explorer
    takes_turns: bool = False  # the learners are explorers that act in turns, without members

    @property
    def replay(self) -> ReplayConfig | None:
        """Default settings of `--level-replay`; None if the algorithm chooses the levels itself."""
        return ReplayConfig() if self.build_levels is None else None


# Rollout size of the methods that ExpGen is compared with: as many steps as ExpGen's PPO, twice the environments.
WIDE = {"envs": 64, "rollout_steps": 256}
GRU = NetworkConfig(memory="gru")
RECIPES = {
    "ppo": Recipe(
        "PPO without memory: the member of the paper's ensemble",
        PPO, PPOConfig(minibatch_order="shuffled"),
    ),
    "ppo-gru": Recipe("PPO with a GRU", PPO, PPOConfig(), GRU),
    "maxent": Recipe(
        "the explorer: PPO with a GRU on the intrinsic reward alone",
        PPO, PPOConfig(gamma=0.9), GRU, KnnConfig(), KnnReward, needs_full_view=True,
    ),
    "openend": Recipe(
        "explorers trained with --end-value 1 that act in turns, without members",
        PPO, PPOConfig(gamma=0.9), GRU, KnnConfig(end_value=1.0), KnnReward, needs_full_view=True,
        takes_turns=True, run={"members": 3, "average": 0.98},
    ),
    "mixed": Recipe(
        "PPO with a GRU on a weighted sum of the intrinsic and the game's reward",
        PPO, PPOConfig(gamma=0.5), GRU, MixtureConfig(), MixedReward, needs_full_view=True,
    ),
    "daac": Recipe(
        "DAAC: separate policy and value networks; the policy network predicts advantages",
        DAAC, DAACConfig(), make_networks=make_decoupled, run=WIDE,
    ),
    "idaac": Recipe(
        "IDAAC: DAAC whose features do not reveal the time since the episode's start",
        IDAAC, IDAACConfig(), make_networks=make_decoupled, run=WIDE,
    ),
    "ppg": Recipe(
        "PPG: separate policy and value networks, and auxiliary phases that distil values into the policy network",
        PPG, PPGConfig(), reward=GameRewardConfig(normalize_with="rollout"), make_networks=make_decoupled, run=WIDE,
    ),
    "leep": Recipe(
        "LEEP: members trained on subsets of the levels, joined by their maximum probability",
        Leep, LeepConfig(), NetworkConfig(extra_layers=2), build_levels=SubsetLevels, splits_envs=True,
        build_policy=lambda spec, network, config: JointPolicy(spec, network, config.subsets),
    ),
    "plr": Recipe(
        "PLR: PPO on training levels sampled by their learning potential",
        PPO, PlrConfig(), build_levels=LevelReplay, run=WIDE,
    ),
    "ucb-drac": Recipe(
        "UCB-DrAC: PPO regularised by image augmentation; a bandit picks the augmentation",
        UcbDrac, UcbDracConfig(), needs_pictures=True, run=WIDE,
    ),
}  # fmt: skip


def expgen_over(member: str) -> Recipe:
    """Return the recipe of ExpGen with members trained by the algorithm `member`."""
    summary = f"ExpGen: {member.upper()} members and an explorer"
    return replace(RECIPES[member], summary=summary, member=member, explorer="maxent")


RECIPES["expgen"] = expgen_over("ppo")
RECIPES["expgen-idaac"] = expgen_over("idaac")


REWARDS: dict[str, tuple[Any, Callable[[Any, int], RewardSource]]] = {  # config and constructor
    "game": (GameRewardConfig(), GameReward),
    "knn": (KnnConfig(), KnnReward),
}


def recipe_of(algo: str) -> Recipe:
    """Return the recipe of an `--algo` name, built-in or registered by the user (`expgen.register`).

    `expgen-A` is ExpGen over any algorithm A whose policies have no memory; `expgen+E` and `expgen-A+E` are ExpGen with
    an explorer trained as `--algo E`.
    """
    ensemble, plus, explorer = str(algo).partition("+")
    prefix, _, member = ensemble.partition("-")
    if algo not in RECIPES and {member, explorer} - RECIPES.keys() - {""}:  # an installed package may register them
        load_entry_points()
    if algo in RECIPES:
        return RECIPES[algo]
    if prefix != "expgen" or not (member or plus) or (member or "ppo") not in RECIPES:
        return find(RECIPES, "--algo", algo)
    member = member or "ppo"
    recipe = expgen_over(member)
    if RECIPES[member].explorer is not None:
        raise InputError(f"--algo is {algo!r} but {member} is an ensemble; accepted: members that are not")
    if recipe.network.memory != "none":
        raise InputError(f"--algo is {algo!r} but policies of {member} have memory; accepted: members without memory")
    if not plus:
        return recipe
    if find(RECIPES, "explorer of --algo", explorer).explorer is not None:
        return find(RECIPES, "--algo", algo)
    return replace(recipe, explorer=explorer, summary=f"{recipe.summary} trained as {explorer}")


def build_algorithm(
    recipe: Recipe, spec: EnvSpec, network: NetworkConfig, config: Any, seed: int, device: torch.device
) -> Algorithm:
    """Build a learner's algorithm on `device`, with networks initialised from `seed`.

    network, config: settings of the network and of the algorithm, which may differ from those of `recipe`.
    """
    if network.memory != "none" and getattr(config, "minibatch_order", "columns") != "columns":
        raise InputError("--minibatch-order is shuffled but the policy has memory; accepted: columns")
    needs_pictures = recipe.needs_pictures or getattr(config, "needs_pictures", False)
    if needs_pictures and (spec.obs_dtype != "uint8" or spec.obs_shape != (*spec.obs_shape[:1] * 2, 3)):
        which = "this --algo" if recipe.needs_pictures else "--augmentation"
        what = f"{spec.name} has observations {spec.obs_shape}"
        raise InputError(f"{what}; accepted for {which}: square colour images")
    generator = torch.Generator().manual_seed(seed)
    if recipe.make_networks is not None:
        return recipe.build(recipe.make_networks(spec, network, generator, device), config)
    return recipe.build(fresh_network(partial(recipe.build_policy, spec, network, config), generator, device), config)
