"""load_agent: something that plays, from a run folder or from what ships with the package."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from expgen.agents.agent import Agent, PolicyAgent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig, check_stretch
from expgen.agents.quorum import scaled_quorum
from expgen.algorithms.algorithm import build_policy, recipe_of
from expgen.errors import InputError
from expgen.fast.fast_networks import for_play
from expgen.networks.actor_critic import Policy
from expgen.networks.state import load_module, under_prefix
from expgen.runs.config import EXPLORER, TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.plan import plans_of
from expgen.runs.shipped import find_run
from expgen.runs.tuned import read_tuned
from expgen.settings import flag_of
from expgen.training.resources import use_device


class LoadedAgent(NamedTuple):
    """An agent and where it comes from."""

    agent: Agent
    name: str  # of the learner, or of the run's algorithm for all of them together
    env_steps: int  # that were played to train it


def load_agent(
    run: Path | str, learner: str | None = None, seed: int = 0, device: str = "cpu", **consensus: Any
) -> Agent:
    """What the run folder `run` has become so far, or the bundled agent of that name, as in `minimaze/expgen`.

    For an ensemble with an explorer that is the ExpGen agent; `consensus` changes settings of its ConsensusConfig.
    Else, and where `learner` names one (`member3`, `explorer`), it is that policy alone, by default `member0`.
    """
    found = find_run(run)
    return load_run(found.folder, learner or found.learner, seed, device, consensus).agent


def load_run(
    folder: RunFolder,
    learner: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    consensus: Mapping[str, Any] | None = None,
) -> LoadedAgent:
    """As `load_agent`, with its provenance. Of the checkpoints only policies' weights are read.

    What `expgen tune` picked for an ensemble stands where `consensus` does not say otherwise.
    """
    config, spec = folder.read_config()
    if config.consensus is None or learner not in (None, config.algo):
        if consensus:
            flag = flag_of(next(iter(consensus)))
            raise InputError(f"{flag} is a setting of ensembles; accepted for one policy: none of them")
        policy, env_steps = load_policy(folder, learner or "member0", device)
        return LoadedAgent(PolicyAgent(policy, seed, spec=spec), learner or "member0", env_steps)
    consensus = consensus or {}
    tuned = {name: value for name, value in read_tuned(folder, config).items() if name not in consensus}
    settings = changed_consensus(config.consensus, {**tuned, **consensus})
    check_stretch(consensus, settings)
    size = settings.ensemble_size or config.members
    if size > config.members:
        raise InputError(f"--ensemble-size is {size}; accepted: 1 to {config.members}")
    if size < config.members and settings.min_agree and "min_agree" not in consensus:
        settings = dataclasses.replace(settings, min_agree=scaled_quorum(settings.min_agree, config.members, size))
    names = [f"member{index}" for index in range(size)] + ([EXPLORER] if settings.fallback == "explorer" else [])
    policies = [load_policy(folder, name, device) for name in names]
    members, explorer = [policy for policy, _ in policies[:size]], policies[size][0] if policies[size:] else None
    agent = ConsensusAgent(members, explorer, spec, settings, seed)
    words = [f"{name}={value}" for name, value in consensus.items() if (name, value) != ("ensemble_size", 0)]
    if not consensus.get("ensemble_size"):
        words.append(f"members={size}")  # reports set whole ensembles beside parts of them
    name = " ".join([config.algo, *words, *_tuned_word(tuned)])
    return LoadedAgent(agent, name, sum(env_steps for _, env_steps in policies))


def _tuned_word(tuned: Mapping[str, Any]) -> list[str]:
    """One word for all that was tuned: reports take such an agent for the plain one."""
    return [f"tuned={'+'.join(f'{name}:{value}' for name, value in tuned.items())}"] if tuned else []


def load_policy(folder: RunFolder, learner: str, device: str = "cpu") -> tuple[Policy, int]:
    """One learner's policy, frozen, and the steps it was trained for."""
    config, spec = folder.read_config()
    plans = {plan.name: plan for plan in plans_of(config)}
    if learner not in plans:
        raise InputError(f"--learner is {learner!r}; accepted: {', '.join(plans)}")
    tensors, facts = folder.checkpoint(learner)
    plan = plans[learner]
    recipe, generator = recipe_of(plan.algo), torch.Generator()
    policy = build_policy(recipe, spec, plan.network, plan.algorithm, generator, use_device(device))
    load_module(policy, under_prefix("policy", tensors), f"{folder.path} {learner}")
    return for_play(policy), int(facts["env_steps"])


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
