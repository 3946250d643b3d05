"""Build an agent from its description: read the policies' weights from their checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch

from expgen.agents.agent import Agent, PolicyAgent
from expgen.agents.consensus import ConsensusConfig
from expgen.agents.description import EXPLORER, AgentDescription, PolicyDescription, explorer_name, with_temperatures
from expgen.agents.own_agent import OWN_AGENTS, make_own_agent
from expgen.agents.quorum import scaled_quorum
from expgen.agents.temperature import AS_TRAINED, temperature_text, with_temperature
from expgen.agents.vote_kinds import Players, changed_consensus, kind_of
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

ALGORITHM_1 = ConsensusConfig()
CARD = "card.json"  # beside a bundled agent: its description and the checksums of its weights


@dataclass(frozen=True)
class LoadedAgent:
    """An agent ready to play, and the columns of its score rows."""

    agent: Agent
    algo: str
    seed: int  # of its training
    name: str  # of its policy, or the algorithm's name for a whole ensemble
    settings: Mapping[str, Any]  # settings in which it differs from the defaults of `name`
    env_steps: int  # training steps of all its policies
    policy: PolicyDescription | None  # the policy, if it is only one


def build_agent(
    description: AgentDescription,
    learner: str | None = None,
    seed: int = 0,
    device: str = "cpu",
    changes: Mapping[str, Any] | None = None,
    weights: Weights | None = None,
    temperature: float | None = None,
    explorer_temperature: float | None = None,
) -> LoadedAgent:
    """Load the policies of `description` and return the agent they form, with randomness from `seed`.

    `learner` selects one policy to play alone (`member3`, `explorer`), or a registered agent that gets all policies.
    `changes` overrides fields of the ConsensusConfig; `weights` and the temperatures those of the description.
    "average" applies to the policies that have averaged weights. The temperature of a policy that plays alone, explorer
    or not, is `temperature`.
    """
    weights = weights or description.weights
    is_alone = description.consensus is None or learner not in (None, description.algo)
    if is_alone and changes:
        flag = flag_of(next(iter(changes)))
        raise InputError(f"{flag} is a setting of ensembles and cannot be used with one policy")
    if is_alone and not (learner in OWN_AGENTS and learner not in description.policies):
        name = learner or "member0"
        _check_explorer_temperature(explorer_temperature, [name])
        own = description.temperature_of(name) if temperature is None else temperature
        description = replace(with_temperatures(description, own), explorer_temperature=None)
        return _policy_alone(description, name, seed, device, weights)
    description = with_temperatures(description, temperature, explorer_temperature)
    if is_alone:
        assert learner is not None
        _check_explorer_temperature(explorer_temperature, description.trained())
        return _own_agent(description, learner, seed, device, weights)
    config = consensus_of(description, changes or {})
    _check_explorer_temperature(explorer_temperature, policy_names(description, config))
    return _ensemble(description, config, changes or {}, seed, device, weights)


def _check_explorer_temperature(given: float | None, names: Sequence[str]) -> None:
    """Raise InputError if a temperature of explorers is `given` and not both members and explorers are in `names`."""
    if given is not None and len({name.startswith(EXPLORER) for name in names}) < 2:
        problem = f"--explorer-temperature is {given} but no explorer plays beside members"
        raise InputError(f"{problem}; accepted: --temperature")


def _policy_alone(description: AgentDescription, name: str, seed: int, device: str, weights: Weights) -> LoadedAgent:
    """Return an agent of one policy."""
    (policy,), env_steps = load_policies(description, [name], device, weights)
    described = description.policies[name]
    agent = PolicyAgent(policy, seed, spec=description.spec)
    settings = _how_played(description, [name], weights) | training_settings([described])
    return LoadedAgent(agent, described.algo, described.seed, name, settings, env_steps, described)


def _own_agent(description: AgentDescription, name: str, seed: int, device: str, weights: Weights) -> LoadedAgent:
    """Return the agent registered as `name`, with all trained policies."""
    trained = description.trained()
    policies, env_steps = load_policies(description, trained, device, weights)
    agent = make_own_agent(name, dict(zip(trained, policies, strict=True)), description.spec, seed)
    settings = _how_played(description, trained, weights)
    return LoadedAgent(agent, name, description.seed, name, settings, env_steps, policy=None)


def _ensemble(
    description: AgentDescription,
    config: ConsensusConfig,
    changes: Mapping[str, Any],
    seed: int,
    device: str,
    weights: Weights,
) -> LoadedAgent:
    """Return the agent that the policies form under `config`, of which `changes` are overrides."""
    names = policy_names(description, config)
    policies, env_steps = policies_as_trained(description, names, device, weights)
    num_members = config.ensemble_size or len(description.members)
    temperatures = description.temperature, description.temperature_of(EXPLORER)
    players = Players(policies[:num_members], policies[num_members:], *temperatures)
    agent = kind_of(config, num_members).build(players, description.spec, config, seed)
    settings = _how_played(description, names, weights)
    settings |= _ensemble_settings(description, changes, config, num_members)
    algo = description.algo
    return LoadedAgent(agent, algo, description.seed, algo, settings, env_steps, policy=None)


def consensus_of(description: AgentDescription, changes: Mapping[str, Any]) -> ConsensusConfig:
    """Return the agent's ConsensusConfig with `changes`; a smaller `ensemble_size` scales the quorum down."""
    assert description.consensus is not None
    num_members = len(description.members)
    config = changed_consensus(description.consensus, changes, num_members)
    size = config.ensemble_size
    if 0 < size < num_members and config.min_agree and "min_agree" not in changes:
        config = replace(config, min_agree=scaled_quorum(config.min_agree, num_members, size))
    return config


def policy_names(description: AgentDescription, config: ConsensusConfig) -> list[str]:
    """Return the names of the policies that play under `config`, members first."""
    members = [f"member{index}" for index in range(config.ensemble_size or len(description.members))]
    is_members_only = kind_of(config, len(members)).members_only
    has_explorers = not members if is_members_only else config.fallback == "explorer"
    explorers = description.explorers if has_explorers else ()
    return members + [explorer_name(index) for index in range(len(explorers))]


def playing_settings(weights: Weights, temperature: float, explorer_temperature: float | None = None) -> dict[str, Any]:
    """Return the settings for score rows of how policies play: averaged weights, temperatures."""
    settings: dict[str, Any] = {} if weights == "live" else {"weights": weights}
    if temperature != AS_TRAINED:
        settings["temperature"] = temperature_text(temperature)
    if explorer_temperature not in (None, temperature):
        settings["explorer_temperature"] = temperature_text(explorer_temperature)
    return settings


def _how_played(description: AgentDescription, names: Sequence[str], weights: Weights) -> dict[str, Any]:
    """Return the `playing_settings` of the policies `names` of an agent."""
    played: Weights = "average" if averages_in(description, names, weights) else "live"
    has_explorers = any(name.startswith(EXPLORER) for name in names)
    explorer_temperature = description.explorer_temperature if has_explorers else None
    return playing_settings(played, description.temperature, explorer_temperature)


def averages_in(description: AgentDescription, names: Sequence[str], weights: Weights) -> list[str]:
    """Return those of the policies `names` that play with averaged weights.

    A bundle stores averaged weights as live ones, and its card lists the policies; training further ends that.
    """
    if weights == "average":
        return [name for name in names if has_average(checkpoint_of(description, name))]
    card = description.folder / CARD
    listed = read_card(card).get("trained", {}).get("averaged", []) if card.exists() else []
    return [name for name in names if name in listed and checkpoint_of(description, name).is_weights_alone]


def _ensemble_settings(
    description: AgentDescription, changes: Mapping[str, Any], config: ConsensusConfig, num_members: int
) -> dict[str, Any]:
    """Return the settings for score rows: overrides, policies, differences from Algorithm 1, results of tuning."""
    settings = {name: value for name, value in changes.items() if (name, value) != ("ensemble_size", 0)}
    if num_members and not changes.get("ensemble_size"):
        settings["members"] = num_members  # reports compare whole ensembles with parts of them
    kind, num_explorers = kind_of(config, num_members), len(description.explorers)
    if kind.members_only:
        settings |= {} if num_members else {"explorers": num_explorers}
    elif num_explorers > 1 or config.vote == "turns":
        settings |= {"explorers": num_explorers, "turn": config.turn}
    for name in kind.row_settings:
        if getattr(config, name) != getattr(ALGORITHM_1, name):
            settings[name] = getattr(config, name)
    settings |= training_settings([description.policies[name] for name in policy_names(description, config)])
    kept = [name for name in description.tuned if name in kind.settings and name not in changes]
    tuned = [f"{name}:{getattr(config, name)}" for name in kept]
    return settings | ({"tuned": "+".join(tuned)} if tuned else {})


USUAL_ENCODERS = {"auto", "impala", "conv", "small"}  # the paper's, and those for small images


def training_settings(policies: Sequence[PolicyDescription]) -> dict[str, Any]:
    """Return the training settings that differ from the paper's: reward, encoder, augmented games, level replay."""
    settings: dict[str, Any] = {}
    for name in ("end_value", "death_cost"):
        values = {getattr(policy.reward, name) for policy in policies if hasattr(policy.reward, name)}
        if any(values):
            settings[name] = "+".join(f"{value:g}" for value in sorted(values))
    networks = [policy.network for policy in policies]
    if encoders := sorted({network.encoder for network in networks} - USUAL_ENCODERS):
        settings["encoder"] = "+".join(encoders)
    if any(network.width != 1 for network in networks):
        settings["width"] = max(network.width for network in networks)
    for name in ("mirror", "recolor", "level_replay"):
        if any(getattr(policy, name) for policy in policies):
            settings[name] = True
    return settings


def load_policies(
    description: AgentDescription, names: Sequence[str], device: str, weights: Weights
) -> tuple[list[Policy], int]:
    """Return the frozen policies `names`, at their temperatures, and the sum of their training steps."""
    policies, env_steps = policies_as_trained(description, names, device, weights)
    tempered = [
        with_temperature(policy, description.temperature_of(name)) for name, policy in zip(names, policies, strict=True)
    ]
    return tempered, env_steps


def policies_as_trained(
    description: AgentDescription, names: Sequence[str], device: str, weights: Weights
) -> tuple[list[Policy], int]:
    """Return the frozen policies `names`, at a temperature of 1, and the sum of their training steps."""
    check_weights(description, names, weights)
    policies, env_steps = [], 0
    for name in names:
        checkpoint = checkpoint_of(description, name)
        what = f"{description.folder} {name}"
        policies.append(policy_from(checkpoint, description.policies[name], description.spec, device, what, weights))
        env_steps += int(checkpoint.facts["env_steps"])
    return policies, env_steps


def check_weights(description: AgentDescription, names: Sequence[str], weights: Weights | None) -> None:
    """Raise InputError if averaged weights are requested and none of the policies `names` has them."""
    chosen = check_choice("--weights", weights or description.weights, get_args(Weights))
    if chosen == "average" and not any(has_average(checkpoint_of(description, name)) for name in names):
        which = names[0] if len(names) == 1 else "any policy"
        problem = f"--weights is average but {description.folder} has no averaged weights of {which}"
        raise InputError(f"{problem}; accepted: live, or a run trained with --average")


def policy_from(
    checkpoint: Checkpoint,
    described: PolicyDescription,
    spec: EnvSpec,
    device: str,
    what: str,
    weights: Weights = "live",
) -> Policy:
    """Return the frozen policy of a checkpoint with these `weights`; `what` names the checkpoint in errors."""
    recipe, tensors = recipe_of(described.algo), policy_weights(checkpoint, weights)
    build = partial(recipe.build_policy, spec, described.network, described.algorithm)
    check = partial(check_fits, tensors=tensors, what=what)
    policy = fresh_network(build, torch.Generator(), use_device(device), check)
    load_module(policy, tensors, what)
    return for_play(policy)


def policies_from(file: Path, described: PolicyDescription, spec: EnvSpec, device: str) -> dict[Weights, Policy]:
    """Return the policies of the checkpoint `file`: with live weights and, if it has them, with averaged weights."""
    checkpoint = read_checkpoint(file)
    kinds: list[Weights] = ["live", "average"] if has_average(checkpoint) else ["live"]
    return {weights: policy_from(checkpoint, described, spec, device, str(file), weights) for weights in kinds}


def checkpoint_of(description: AgentDescription, name: str) -> Checkpoint:
    """Return the newest valid checkpoint of a policy; raise InputError if there is none or its checksum is wrong."""
    if name not in description.policies:
        raise InputError(f"--learner is {name!r}; accepted: {', '.join(description.policies)}")
    folder = description.checkpoints_of(name)
    found = latest_checkpoint(folder)
    if found is None:
        trained = ", ".join(description.trained()) or "none yet"
        raise InputError(f"{description.folder} has no checkpoint of {name!r}; accepted: {trained}")
    _check_checksum(description.folder / CARD, folder, found)
    return found


def _check_checksum(card: Path, folder: Path, checkpoint: Checkpoint) -> None:
    """Raise InputError if the weights of a bundle differ from the checksum in its card."""
    if not checkpoint.is_weights_alone or not card.exists():
        return
    digest = digest_of(checkpoint.tensors)
    if read_card(card).get("weights", {}).get(folder.name, digest) != digest:
        raise InputError(f"the weights in {folder} do not match the checksum in {card}")


def read_card(file: Path) -> dict[str, Any]:
    """Return the contents of a bundle's card; raise InputError if it is damaged."""
    try:
        card = read_json(file)
    except (OSError, InputError):
        card = None
    parts = ("weights", "trained", "files")
    is_valid = isinstance(card, dict) and all(isinstance(card.get(name, {}), dict) for name in parts)
    if not (is_valid and isinstance(card.get("trained", {}).get("averaged", []), list)):
        raise InputError(f"{file} is damaged; accepted: a card that scripts/bundle wrote")
    return card
