"""load_agent: something that plays, from a run folder or from what ships with the package."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch

from expgen.agents.agent import Agent, PolicyAgent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig, check_stretch
from expgen.agents.quorum import scaled_quorum
from expgen.algorithms.recipes import build_policy, recipe_of
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, check_choice
from expgen.fast.fast_networks import for_play
from expgen.networks.actor_critic import Policy
from expgen.networks.state import load_module
from expgen.runs.config import EXPLORER, TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.plan import LearnerPlan, plans_of
from expgen.runs.shipped import find_run
from expgen.runs.tuned import read_tuned
from expgen.settings import flag_of
from expgen.training.average import Weights, has_average, policy_weights
from expgen.training.checkpoint import Checkpoint, read_checkpoint
from expgen.training.resources import use_device


class LoadedAgent(NamedTuple):
    """An agent and where it comes from."""

    agent: Agent
    name: str  # of the learner, or of the run's algorithm for all of them together
    env_steps: int  # that were played to train it


def load_agent(
    run: Path | str,
    learner: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    weights: Weights = "live",
    **consensus: Any,
) -> Agent:
    """What the run folder `run` has become so far, or the bundled agent of that name, as in `minimaze/expgen`.

    For an ensemble with an explorer that is the ExpGen agent; `consensus` changes settings of its ConsensusConfig.
    Else, and where `learner` names one (`member3`, `explorer`), it is that policy alone, by default `member0`.
    `weights` are the live ones or, of a run trained with `--average`, the averaged ones.
    """
    found = find_run(run)
    return load_run(found.folder, learner or found.learner, seed, device, consensus, weights).agent


def load_run(
    folder: RunFolder,
    learner: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    consensus: Mapping[str, Any] | None = None,
    weights: Weights = "live",
) -> LoadedAgent:
    """As `load_agent`, with its provenance. Of the checkpoints only policies' weights are read.

    What `expgen tune` picked for an ensemble stands where `consensus` does not say otherwise. Averaged `weights` of an
    ensemble are those of every policy in it that has any.
    """
    config, spec = folder.read_config()
    if config.consensus is None or learner not in (None, config.algo):
        if consensus:
            flag = flag_of(next(iter(consensus)))
            raise InputError(f"{flag} is a setting of ensembles; accepted for one policy: none of them")
        learner = learner or "member0"
        policies = load_policies(folder, [learner], device, weights)
        return LoadedAgent(PolicyAgent(policies[0][0], seed, spec=spec), variant(learner, weights), policies[0][1])
    consensus = consensus or {}
    tuned = {name: value for name, value in read_tuned(folder, config).items() if name not in consensus}
    settings = changed_consensus(config.consensus, {**tuned, **consensus})
    check_stretch(consensus, settings)
    size = settings.ensemble_size or config.members
    if size > config.members:
        raise InputError(f"--ensemble-size is {size}; accepted: 1 to {config.members}")
    if size < config.members and settings.min_agree and "min_agree" not in consensus:
        settings = dataclasses.replace(settings, min_agree=scaled_quorum(settings.min_agree, config.members, size))
    policies = load_policies(folder, players_of(config, settings), device, weights)
    members, explorer = [policy for policy, _ in policies[:size]], policies[size][0] if policies[size:] else None
    agent = ConsensusAgent(members, explorer, spec, settings, seed)
    words = [f"{name}={value}" for name, value in consensus.items() if (name, value) != ("ensemble_size", 0)]
    if not consensus.get("ensemble_size"):
        words.append(f"members={size}")  # reports set whole ensembles beside parts of them
    name = " ".join([variant(config.algo, weights), *words, *_tuned_word(tuned)])
    return LoadedAgent(agent, name, sum(env_steps for _, env_steps in policies))


def players_of(config: TrainConfig, settings: ConsensusConfig) -> list[str]:
    """Whose policies an ensemble of these `settings` plays with."""
    members = [f"member{index}" for index in range(settings.ensemble_size or config.members)]
    return members + ([EXPLORER] if settings.fallback == "explorer" else [])


def _tuned_word(tuned: Mapping[str, Any]) -> list[str]:
    """One word for all that was tuned: reports take such an agent for the plain one."""
    return [f"tuned={'+'.join(f'{name}:{value}' for name, value in tuned.items())}"] if tuned else []


def load_policies(
    folder: RunFolder, learners: Sequence[str], device: str, weights: Weights
) -> list[tuple[Policy, int]]:
    """As `load_policy`, of several; an InputError where averaged weights are asked for and none of them has any."""
    check_weights(folder, learners, weights)
    return [load_policy(folder, learner, device, weights) for learner in learners]


def check_weights(folder: RunFolder, learners: Sequence[str], weights: Weights) -> None:
    """An InputError where none of `learners` has the weights asked for."""
    check_choice("--weights", weights, get_args(Weights))
    if weights == "average" and not any(has_average(folder.checkpoint(learner)) for learner in learners):
        whose = learners[0] if len(learners) == 1 else "every policy"
        missing = f"{folder.path} has {whose} without an average"
        raise InputError(f"--weights is average but {missing}; accepted: live, or a run trained with --average")


def variant(name: str, weights: Weights) -> str:
    """The name of a learner or an ensemble in score files, with a word for weights that are not the live ones."""
    return name if weights == "live" else f"{name} weights={weights}"


def load_policy(folder: RunFolder, learner: str, device: str = "cpu", weights: Weights = "live") -> tuple[Policy, int]:
    """One learner's policy, frozen, and the steps it was trained for; averaged only where it has an average."""
    config, spec = folder.read_config()
    plans = {plan.name: plan for plan in plans_of(config)}
    if learner not in plans:
        raise InputError(f"--learner is {learner!r}; accepted: {', '.join(plans)}")
    checkpoint = folder.checkpoint(learner)
    policy = policy_from(checkpoint, plans[learner], spec, device, f"{folder.path} {learner}", weights)
    return policy, int(checkpoint.facts["env_steps"])


def policy_from(
    checkpoint: Checkpoint, plan: LearnerPlan, spec: EnvSpec, device: str, what: str, weights: Weights = "live"
) -> Policy:
    """The frozen policy that a checkpoint holds, with these `weights`; `what` names the checkpoint in errors."""
    recipe, generator = recipe_of(plan.algo), torch.Generator()
    policy = build_policy(recipe, spec, plan.network, plan.algorithm, generator, use_device(device))
    load_module(policy, policy_weights(checkpoint, weights), what)
    return for_play(policy)


def policies_from(file: Path, plan: LearnerPlan, spec: EnvSpec, device: str) -> dict[Weights, Policy]:
    """Every policy that can be played of the checkpoint in `file`: with its live weights and with averaged ones."""
    checkpoint = read_checkpoint(file)
    kinds: list[Weights] = ["live", "average"] if has_average(checkpoint) else ["live"]
    return {weights: policy_from(checkpoint, plan, spec, device, str(file), weights) for weights in kinds}


def changed_consensus(config: ConsensusConfig, values: Mapping[str, Any]) -> ConsensusConfig:
    """`config` with some settings replaced."""
    names = [entry.name for entry in dataclasses.fields(config)]
    for name in values:
        if name not in names:
            raise InputError(f"setting {name!r} is unknown to ensembles; accepted: {', '.join(names)}")
    return dataclasses.replace(config, **values)


def agents_of(folder: RunFolder, config: TrainConfig, learner: str | None) -> list[str]:
    """Which agents `--learner` means: that one; for none the whole ensemble, or every member that has trained."""
    trained = folder.learners()
    if not trained:
        raise InputError(f"{folder.path} has no checkpoint yet; accepted: a run that has trained")
    if learner is None:
        return [config.algo] if config.consensus is not None else trained
    if learner == "each":
        return trained
    if learner not in trained:
        raise InputError(f"--learner is {learner!r}; accepted: each, {', '.join(trained)}")
    return [learner]
