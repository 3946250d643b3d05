"""From an agent's description to something that plays: policies' weights, read from their checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch

from expgen.agents.agent import Agent, PolicyAgent, TurnsAgent, explorers_agent
from expgen.agents.consensus import ConsensusAgent, ConsensusConfig, changed_consensus
from expgen.agents.description import AgentDescription, PolicyDescription, explorer_name
from expgen.agents.own_agent import OWN_AGENTS, make_own_agent
from expgen.agents.quorum import scaled_quorum
from expgen.algorithms.recipes import recipe_of
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, check_choice
from expgen.fast.fast_networks import for_play
from expgen.files import read_json
from expgen.networks.actor_critic import Policy, fresh_network
from expgen.networks.state import check_fits, load_module
from expgen.settings import flag_of
from expgen.training.average import Weights, has_average, policy_weights
from expgen.training.checkpoint import Checkpoint, digest_of, latest_checkpoint, read_checkpoint
from expgen.training.resources import use_device

BEYOND = {"vote": "leader", "once": False, "patience": 0}  # settings beyond Algorithm 1, and what it does
CARD = "card.json"  # beside an agent that ships: what it is, and checksums of its weights


@dataclass(frozen=True)
class LoadedAgent:
    """An agent that can play, and what its score rows say of it."""

    agent: Agent
    algo: str
    seed: int  # of its training
    name: str  # of one policy, or the algorithm's for all of them together
    settings: Mapping[str, Any]  # in which it differs from what `name` means
    env_steps: int  # that were played to train it
    policy: PolicyDescription | None  # where it is one policy alone


def build_agent(
    description: AgentDescription,
    learner: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    changes: Mapping[str, Any] | None = None,
    weights: Weights | None = None,
) -> LoadedAgent:
    """The agent that `description` says, playing with randomness from `seed`; only policies' weights are read.

    `learner` names one of its policies (`member3`, `explorer`) to play alone, or a registered agent to play over all of
    them. `changes` are settings of its ConsensusConfig to replace. `weights` are those that play, if not what the
    description says: averaged ones are those of every policy that has any.
    """
    weights = weights or description.weights
    marks = {} if weights == "live" else {"weights": weights}
    is_alone = description.consensus is None or learner not in (None, description.algo)
    if is_alone and changes:
        flag = flag_of(next(iter(changes)))
        raise InputError(f"{flag} is a setting of ensembles; accepted for one policy: none of them")
    if learner in OWN_AGENTS and learner not in description.policies:
        trained = description.trained()
        policies, env_steps = load_policies(description, trained, device, weights)
        own = make_own_agent(learner, dict(zip(trained, policies, strict=True)), description.spec, seed)
        return LoadedAgent(own, learner, description.seed, learner, marks, env_steps, None)
    if is_alone:
        name = "member0" if learner is None else learner
        (policy,), env_steps = load_policies(description, [name], device, weights)
        described = description.policies[name]
        agent = PolicyAgent(policy, seed, spec=description.spec)
        told = {**marks, **training_settings([described])}
        return LoadedAgent(agent, described.algo, described.seed, name, told, env_steps, described)
    asked = dict(changes or {})
    settings = consensus_of(description, asked)
    policies, env_steps = load_policies(description, players_of(description, settings), device, weights)
    num_members = voters_of(description, settings)
    members, explorers = policies[:num_members], policies[num_members:]
    player: Agent
    if settings.vote == "turns" and (members or settings.patience):
        player = TurnsAgent(policies, settings.turn, seed, description.spec, num_members, settings.patience)
    elif members:
        player = ConsensusAgent(members, explorers, description.spec, settings, seed)
    else:
        player = explorers_agent(explorers, settings.turn, seed, description.spec)
    told = {**marks, **_told(description, asked, settings, num_members)}
    return LoadedAgent(player, description.algo, description.seed, description.algo, told, env_steps, None)


def consensus_of(description: AgentDescription, changes: Mapping[str, Any]) -> ConsensusConfig:
    """How the agent's ensemble votes with `changes`; a part of it keeps the share of its quorum."""
    assert description.consensus is not None
    num_members = len(description.members)
    settings = changed_consensus(description.consensus, changes, num_members)
    size = settings.ensemble_size
    if 0 < size < num_members and settings.min_agree and "min_agree" not in changes:
        settings = replace(settings, min_agree=scaled_quorum(settings.min_agree, num_members, size))
    return settings


def players_of(description: AgentDescription, settings: ConsensusConfig) -> list[str]:
    """Whose policies an ensemble of these `settings` plays with: members first."""
    members = [f"member{index}" for index in range(voters_of(description, settings))]
    explorers = description.explorers if settings.fallback == "explorer" else ()
    return members + [explorer_name(index) for index in range(len(explorers))]


def voters_of(description: AgentDescription, settings: ConsensusConfig) -> int:
    """How many members vote."""
    return settings.ensemble_size or len(description.members)


def _told(
    description: AgentDescription, asked: Mapping[str, Any], settings: ConsensusConfig, num_members: int
) -> dict[str, Any]:
    """What a score row says of an ensemble: what was asked for, who plays, how it departs from Algorithm 1, and what
    `expgen tune` picked.
    """
    told = {name: value for name, value in asked.items() if (name, value) != ("ensemble_size", 0)}
    if num_members and not asked.get("ensemble_size"):
        told["members"] = num_members  # reports set whole ensembles beside parts of them
    if len(description.explorers) > 1 or settings.vote == "turns":
        told |= {"explorers": len(description.explorers), "turn": settings.turn}
    if num_members:
        beyond = ("vote", "patience") if settings.vote == "turns" else ("vote", "once")
        told |= {name: getattr(settings, name) for name in beyond if getattr(settings, name) != BEYOND[name]}
    told |= training_settings([description.policies[name] for name in players_of(description, settings)])
    picked = [f"{name}:{getattr(settings, name)}" for name in description.tuned if name not in asked]
    return told | ({"tuned": "+".join(picked)} if picked else {})


USUAL_ENCODERS = {"auto", "impala", "conv", "small"}  # the paper's, and those of small pictures


def training_settings(policies: Sequence[PolicyDescription]) -> dict[str, Any]:
    """What was not the paper's way to train them: κ of explorers, another encoder, how games were shown."""
    values = {policy.reward.end_value for policy in policies if hasattr(policy.reward, "end_value")} or {0}
    told: dict[str, Any] = {"end_value": "+".join(f"{value:g}" for value in sorted(values))} if any(values) else {}
    networks = [policy.network for policy in policies]
    encoders = sorted({network.encoder for network in networks} - USUAL_ENCODERS)
    told |= {"encoder": "+".join(encoders)} if encoders else {}
    told |= {"width": max(network.width for network in networks)} if any(n.width != 1 for n in networks) else {}
    return told | {name: True for name in ("mirror", "recolor") if any(getattr(policy, name) for policy in policies)}


def load_policies(
    description: AgentDescription, names: Sequence[str], device: str, weights: Weights
) -> tuple[list[Policy], int]:
    """Frozen policies and the steps that all of them were trained for; averaged `weights` where there is an average."""
    check_weights(description, names, weights)
    policies, env_steps = [], 0
    for name in names:
        checkpoint = checkpoint_of(description, name)
        what = f"{description.folder} {name}"
        policies.append(policy_from(checkpoint, description.policies[name], description.spec, device, what, weights))
        env_steps += int(checkpoint.facts["env_steps"])
    return policies, env_steps


def check_weights(description: AgentDescription, names: Sequence[str], weights: Weights | None) -> None:
    """An InputError where none of the policies `names` has the weights asked for."""
    asked = check_choice("--weights", weights or description.weights, get_args(Weights))
    if asked == "average" and not any(has_average(checkpoint_of(description, name)) for name in names):
        whose = names[0] if len(names) == 1 else "every policy"
        missing = f"{description.folder} has {whose} without an average"
        raise InputError(f"--weights is average but {missing}; accepted: live, or a run trained with --average")


def policy_from(
    checkpoint: Checkpoint,
    described: PolicyDescription,
    spec: EnvSpec,
    device: str,
    what: str,
    weights: Weights = "live",
) -> Policy:
    """The frozen policy that a checkpoint holds, with these `weights`; `what` names the checkpoint in errors."""
    recipe, tensors = recipe_of(described.algo), policy_weights(checkpoint, weights)
    build = partial(recipe.build_policy, spec, described.network, described.algorithm)
    fits = partial(check_fits, tensors=tensors, what=what)
    policy = fresh_network(build, torch.Generator(), use_device(device), fits)
    load_module(policy, tensors, what)
    return for_play(policy)


def policies_from(file: Path, described: PolicyDescription, spec: EnvSpec, device: str) -> dict[Weights, Policy]:
    """Every policy that can be played of the checkpoint in `file`: with its live weights and with averaged ones."""
    checkpoint = read_checkpoint(file)
    kinds: list[Weights] = ["live", "average"] if has_average(checkpoint) else ["live"]
    return {weights: policy_from(checkpoint, described, spec, device, str(file), weights) for weights in kinds}


def checkpoint_of(description: AgentDescription, name: str) -> Checkpoint:
    """The newest good checkpoint of one policy; an InputError where there is none, or not the weights that shipped."""
    if name not in description.policies:
        raise InputError(f"--learner is {name!r}; accepted: {', '.join(description.policies)}")
    folder = description.checkpoints_of(name)
    found = latest_checkpoint(folder)
    if found is None:
        trained = ", ".join(description.trained()) or "none yet"
        raise InputError(f"{description.folder} has no checkpoint of {name!r}; accepted: {trained}")
    check_shipped(description.folder / CARD, folder, found)
    return found


def check_shipped(card: Path, folder: Path, checkpoint: Checkpoint) -> None:
    """An InputError where `folder` holds a policy alone and not the one whose checksum `card` has, if there is one."""
    if not checkpoint.is_weights_alone or not card.exists():
        return
    digest = digest_of(checkpoint.tensors)
    if read_card(card).get("weights", {}).get(folder.name, digest) != digest:
        raise InputError(f"{folder} holds other weights than {card} says; accepted: those that shipped")


def read_card(file: Path) -> dict[str, Any]:
    """What an agent that ships says of itself."""
    try:
        card = read_json(file)
    except (OSError, InputError):
        card = None
    if not isinstance(card, dict) or not isinstance(card.get("weights", {}), dict):
        raise InputError(f"{file} is damaged; accepted: a card that scripts/bundle wrote")
    return card
