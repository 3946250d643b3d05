"""LearnerPlan: the settings of each learner of a run; building learners and assigning them to workers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from expgen.agents.description import PolicyDescription, explorer_name
from expgen.algorithms.recipes import Recipe, build_algorithm, recipe_of
from expgen.envs.augmented_env import AugmentedEnv
from expgen.envs.levels import LevelSet
from expgen.envs.make import build_env
from expgen.fast.accelerate import accelerate
from expgen.networks.impala import Precision
from expgen.rollout.level_choice import Director, LevelChooser
from expgen.rollout.level_replay import LevelReplay, ReplayConfig
from expgen.rollout.rollout import Rollout
from expgen.runs.config import ExplorerConfig, TrainConfig
from expgen.training.average import AveragedPolicy
from expgen.training.learner import Learner, Schedule
from expgen.training.origin import origin_of
from expgen.training.resources import Resources

T = TypeVar("T")


@dataclass(frozen=True)
class LearnerPlan:
    """One policy to train, for how long and on which rollouts."""

    name: str  # member0, member1, …, explorer: also the name of its checkpoint folder
    is_explorer: bool
    policy: PolicyDescription  # algorithm, seed, levels and settings
    steps: int  # a multiple of the rollout's steps
    envs: int
    rollout_steps: int
    average: float  # rate of the averaged weights; 0: no average
    replay: ReplayConfig | None  # settings of its level replay; None: without
    precision: Precision  # of its convolutions


def plans_of(config: TrainConfig) -> list[LearnerPlan]:
    """Return the plans of a run's learners: members, then explorers, each ordered by seed."""
    recipe, explorer = recipe_of(config.algo), config.explorer
    algo = recipe.member or config.algo
    plans = [_plan(config, config, index, algo, recipe.takes_turns) for index in range(config.members)]
    if explorer is not None and recipe.explorer is not None:
        plans += [_plan(config, explorer, index, recipe.explorer, True) for index in range(explorer.count)]
    return plans


def _plan(
    config: TrainConfig, part: TrainConfig | ExplorerConfig, index: int, algo: str, is_explorer: bool
) -> LearnerPlan:
    """Return the plan of learner number `index` of the members or explorers that `part` describes."""
    name, seed = explorer_name(index) if is_explorer else f"member{index}", config.seed + index
    replay = config.replay if config.level_replay and part is config else None
    policy = PolicyDescription(
        path=f"checkpoints/{name}",
        algo=algo,
        seed=seed,
        levels=member_levels(config, seed) if part is config else config.train_set,
        network=part.network,
        algorithm=part.algorithm,
        reward=part.reward,
        mirror=config.mirror,
        recolor=config.recolor,
        level_replay=replay is not None,
    )
    envs = config.envs_of(part)
    rollout = envs * part.rollout_steps
    steps = part.steps // rollout * rollout
    amounts = (steps, envs, part.rollout_steps, part.average)
    return LearnerPlan(name, is_explorer, policy, *amounts, replay, config.precision)


def first_plans(config: TrainConfig, count: int) -> list[LearnerPlan]:
    """Return plans of `count` learners in all, including the explorers of a population if `count` allows."""
    explorers = config.explorer.count if config.explorer else 0
    members = count - explorers if count > explorers else count
    return plans_of(replace(config, members=members))[:count]


def member_levels(config: TrainConfig, seed: int) -> LevelSet:
    """Return the levels of the member with `seed`: all training levels, or the distinct ones of a bootstrap sample.

    A bootstrap sample has about 63 % of the levels, so about 37 % of the members never see a given level.
    """
    levels = config.train_set
    if config.member_levels == "all" or levels.seeds is None:
        return levels
    rng = np.random.default_rng([seed, len(levels)])
    drawn = np.unique(rng.integers(len(levels), size=len(levels)))
    return LevelSet(tuple(levels.seeds[int(index)] for index in drawn))


def build_learner(config: TrainConfig, plan: LearnerPlan, resources: Resources) -> Learner:
    """Build the untrained learner of a plan, accelerated for its device."""
    described, recipe = plan.policy, recipe_of(plan.policy.algo)
    games = (described.levels, plan.envs, described.seed, resources.env_threads, recipe.needs_full_view)
    env = build_env(config.env, *games, **config.options)
    if described.mirror or described.recolor:
        env = AugmentedEnv(env, described.mirror, described.recolor)
    chooser = level_chooser(recipe, plan)
    director = None if chooser is None else Director(env, chooser)
    observation = env.observe()
    has_full_view = observation.full is not observation.obs
    settings = (described.network, described.algorithm, described.seed)
    algorithm = build_algorithm(recipe, env.spec, *settings, resources.device)
    state_size = algorithm.policy.state_size
    rollout = Rollout(env.spec, plan.rollout_steps, plan.envs, state_size, resources.device, has_full_view)
    schedule = Schedule(plan.steps, config.eval_every, config.checkpoint_seconds)
    reward = recipe.build_reward(described.reward, plan.envs)
    reward.prepare(env.spec, resources.device, described.seed)
    average = AveragedPolicy(algorithm.policy, plan.average) if plan.average else None
    algorithm, lane = accelerate(algorithm, rollout, plan.precision, plan.name)
    return Learner(
        plan.name,
        env=env,
        algorithm=algorithm,
        lane=lane,
        reward=reward,
        rollout=rollout,
        schedule=schedule,
        seed=described.seed,
        director=director,
        average=average,
        origin=origin_of(config.env, described.algo, described.seed, described.levels),
    )


def level_chooser(recipe: Recipe, plan: LearnerPlan) -> LevelChooser | None:
    """Return what chooses the levels: the algorithm itself, level replay, or None for the environment."""
    learner = (plan.policy.levels, plan.envs, plan.policy.seed)
    if recipe.build_levels is not None:
        return recipe.build_levels(plan.policy.algorithm, *learner)
    return None if plan.replay is None else LevelReplay(plan.replay, *learner)


MEMORY_COST = 2.0  # cost of a step with memory, in steps without: sequences of 512 leave the device waiting


def cost_of(plan: LearnerPlan, env_steps: int) -> float:
    """Return the remaining cost of a learner that has trained for `env_steps`."""
    left = max(0, plan.steps - env_steps)
    return left * (1.0 if plan.policy.network.memory == "none" else MEMORY_COST)


def spread(costs: Mapping[T, float], num_workers: int) -> list[list[T]]:
    """Assign learners to workers: the most expensive first, each to the worker with the smallest load so far."""
    shares: list[list[T]] = [[] for _ in range(num_workers)]
    loads = [0.0] * num_workers
    for learner in sorted(costs, key=lambda learner: -costs[learner]):
        least = loads.index(min(loads))
        shares[least].append(learner)
        loads[least] += costs[learner]
    return [share for share in shares if share]
