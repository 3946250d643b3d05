"""Build an agent from its description."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from expgen.agents.agent import Agent, PolicyAgent
from expgen.agents.consensus import ConsensusConfig
from expgen.agents.description import EXPLORER, AgentDescription, PolicyDescription, explorer_name, with_temperatures
from expgen.agents.own_agent import OWN_AGENTS, make_own_agent
from expgen.agents.policies import averages_in, load_policies, policies_as_trained
from expgen.agents.quorum import scaled_quorum
from expgen.agents.temperature import AS_TRAINED, temperature_text, with_temperature
from expgen.agents.vote_kinds import Players, changed_consensus, kind_of
from expgen.algorithms.recipes import recipe_of
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy
from expgen.settings import flag_of
from expgen.training.average import Weights

ALGORITHM_1 = ConsensusConfig()


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
    temperature: float | None = None,
    explorer_temperature: float | None = None,
) -> LoadedAgent:
    """Load the policies of `description` and return the agent they form, with randomness from `seed`.

    `learner` selects one policy to play alone (`member3`, `explorer`), or a registered agent that gets all policies.
    `changes` overrides fields of the ConsensusConfig; the temperatures override those of the description. The
    temperature of a policy that plays alone, explorer or not, is `temperature`.
    """
    is_alone = description.consensus is None or learner not in (None, description.algo)
    if is_alone and changes:
        flag = flag_of(next(iter(changes)))
        raise InputError(f"{flag} is a setting of ensembles and cannot be used with one policy")
    if is_alone and not (learner in OWN_AGENTS and learner not in description.policies):
        name = "member0" if learner is None else learner
        _check_explorer_temperature(explorer_temperature, [name])
        own = description.temperature_of(name) if temperature is None else temperature
        description = replace(with_temperatures(description, own), explorer_temperature=None)
        (policy,), env_steps = policies_as_trained(description, [name], device)
        return agent_of_policy(description, name, policy, _weights_played(description, [name]), env_steps, seed)
    description = with_temperatures(description, temperature, explorer_temperature)
    if is_alone:
        assert learner is not None
        _check_explorer_temperature(explorer_temperature, description.trained())
        return _own_agent(description, learner, seed, device)
    config = consensus_of(description, changes or {})
    _check_explorer_temperature(explorer_temperature, policy_names(description, config))
    return _ensemble(description, config, changes or {}, seed, device)


def _check_explorer_temperature(given: float | None, names: Sequence[str]) -> None:
    """Raise InputError if a temperature of explorers is `given` and not both members and explorers are in `names`."""
    if given is not None and len({name.startswith(EXPLORER) for name in names}) < 2:
        problem = f"--explorer-temperature is {given} but no explorer plays beside members"
        raise InputError(f"{problem}; accepted: --temperature")


def agent_of_policy(
    description: AgentDescription, name: str, policy: Policy, weights: Weights, env_steps: int, seed: int
) -> LoadedAgent:
    """Return an agent that plays `policy`, which is `name` with these `weights` after `env_steps`."""
    described, temperature = description.policies[name], description.temperature_of(name)
    agent = PolicyAgent(with_temperature(policy, temperature), seed, spec=description.spec)
    settings = playing_settings(weights, temperature) | training_settings([described])
    return LoadedAgent(agent, described.algo, described.seed, name, settings, env_steps, described)


def _own_agent(description: AgentDescription, name: str, seed: int, device: str) -> LoadedAgent:
    """Return the agent registered as `name`, with all trained policies."""
    trained = description.trained()
    policies, env_steps = load_policies(description, trained, device)
    agent = make_own_agent(name, dict(zip(trained, policies, strict=True)), description.spec, seed)
    settings = _how_played(description, trained)
    return LoadedAgent(agent, name, description.seed, name, settings, env_steps, policy=None)


def _ensemble(
    description: AgentDescription, config: ConsensusConfig, changes: Mapping[str, Any], seed: int, device: str
) -> LoadedAgent:
    """Return the agent that the policies form under `config`, of which `changes` are overrides."""
    names = policy_names(description, config)
    policies, env_steps = policies_as_trained(description, names, device)
    num_members = config.ensemble_size or len(description.members)
    temperatures = description.temperature, description.temperature_of(EXPLORER)
    players = Players(policies[:num_members], policies[num_members:], *temperatures)
    agent = kind_of(config, num_members).build(players, description.spec, config, seed)
    settings = _how_played(description, names)
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
    kind = kind_of(config, len(members))
    has_explorers = config.fallback == "explorer" if kind.has_vote else not (members and kind.members_only)
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


def _weights_played(description: AgentDescription, names: Sequence[str]) -> Weights:
    """Return "average" if any of the policies `names` plays with averaged weights."""
    return "average" if averages_in(description, names) else "live"


def _how_played(description: AgentDescription, names: Sequence[str]) -> dict[str, Any]:
    """Return the `playing_settings` of the policies `names` of an agent."""
    has_explorers = any(name.startswith(EXPLORER) for name in names)
    explorer_temperature = description.explorer_temperature if has_explorers else None
    return playing_settings(_weights_played(description, names), description.temperature, explorer_temperature)


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
    kept = [name for name in description.tuned if name in kind.settings and name not in changes]
    for name in kind.row_settings:
        if name not in kept and getattr(config, name) != getattr(ALGORITHM_1, name):
            settings[name] = getattr(config, name)
    settings |= training_settings([description.policies[name] for name in policy_names(description, config)])
    tuned = [f"{name}:{getattr(config, name)}" for name in kept]
    return settings | ({"tuned": "+".join(tuned)} if tuned else {})


USUAL_ENCODERS = {"auto", "impala", "conv", "small"}  # the paper's, and those for small images


def training_settings(policies: Sequence[PolicyDescription]) -> dict[str, Any]:
    """Return the training settings that differ from the paper's: reward, network, augmentation, level replay."""
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
    if augmentations := sorted({augmentation_of(policy) for policy in policies} - {""}):
        settings["augmentation"] = "+".join(augmentations)
    for name in ("mirror", "recolor", "level_replay"):
        if any(getattr(policy, name) for policy in policies):
            settings[name] = True
    return settings


def augmentation_of(policy: PolicyDescription) -> str:
    """Return the policy's `--augmentation`; an empty text if it is its algorithm's default, or there is none."""
    usual = getattr(recipe_of(policy.algo).config, "augmentation", "")
    augmentation = getattr(policy.algorithm, "augmentation", usual)
    return "" if augmentation == usual else str(augmentation)
