"""expgen.register: add algorithms, rewards, encoders, agents and environments by name."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, get_args

from expgen.agents.own_agent import OWN_AGENTS, check_own_agent
from expgen.algorithms.ppo import PPO, PPOConfig
from expgen.algorithms.recipes import RECIPES, REWARDS, Recipe
from expgen.envs.own_env import register_env_from
from expgen.errors import InputError, check_choice
from expgen.networks.actor_critic import ENCODERS, NetworkConfig
from expgen.networks.own_encoder import OWN_ENCODERS
from expgen.plugins import add, caller, find
from expgen.runs.config import TrainConfig
from expgen.settings import flatten
from expgen.text import short_repr

Kind = Literal["algorithm", "reward", "encoder", "agent", "env"]
DETAILS = ("network", "run", "needs_full_view", "needs_pictures", "make_networks", "build_policy", "build_levels")


@dataclass(frozen=True)
class NoSettings:
    """The config of an algorithm or reward without settings."""


def register(kind: Kind, name: str, thing: Any = None, config: Any = None, **details: Any) -> Any:
    """Register `thing` as `name` for the command line, config files and Python. Without `thing` returns a decorator.

    kind: decides how `thing` is called, what it returns and where `name` is used:
        "algorithm": `thing(policy, config)` returns an `Algorithm`. Used as `--algo NAME` and, for policies without
            memory, as `--algo expgen-NAME`, which is ExpGen with such members.
        "reward": `thing(config, num_envs)` returns a `RewardSource`. `--algo NAME` is PPO with a GRU on this reward;
            `--algo expgen+NAME` is ExpGen with such an explorer.
        "encoder": `thing(obs_shape, features)` returns a module. Used as `--encoder NAME`.
        "agent": `thing(policies, spec, seed)` returns an `Agent`; `policies` are a run's policies by name. Used as
            `--learner NAME` of `evaluate` and `play`.
        "env": as `register_env`.
    name: letters, digits, `_`, `.` and `-`. The names of learners (`member0`, `explorer`, `each`) are not for agents.
    config: settings of an algorithm or reward: an instance of a frozen dataclass, whose fields become flags. That of an
        algorithm has `gamma` and `gae_lambda`.
    details: for an algorithm, `reward` (a registered name or `game`) and the fields of `Recipe` in DETAILS; for a
        reward, `network` and `needs_full_view`.
    """
    check_choice("kind", kind, get_args(Kind))
    origin = caller()

    def add_thing(thing: Any) -> Any:
        if not callable(thing):
            raise InputError(f"{kind} {name!r} is {short_repr(thing)}; accepted: a class or function")
        if kind in ("algorithm", "reward"):
            make_recipe = _algorithm if kind == "algorithm" else _reward
            recipe = make_recipe(name, thing, _settings(name, config), details)
            _check_names(name, recipe)
            add(RECIPES, kind, name, recipe, origin)
            if kind == "reward":
                REWARDS[name] = recipe.reward, thing
            return thing
        given = ["config", *details] if config is not None else list(details)
        if given:
            raise InputError(f"{kind} {name!r} has {given[0]}; accepted: only for algorithms and rewards")
        if kind == "env":
            register_env_from(name, thing, origin)
        elif kind == "encoder":
            if name in ENCODERS:
                raise InputError(f"name of the encoder is {name!r}, which is taken; accepted: another name")
            add(OWN_ENCODERS, kind, name, thing, origin)
        else:
            check_own_agent(name, thing)
            add(OWN_AGENTS, kind, name, thing, origin)
        return thing

    return add_thing if thing is None else add_thing(thing)


def _algorithm(name: str, build: Any, settings: Any, details: dict[str, Any]) -> Recipe:
    details = dict(details)
    reward_config, build_reward = find(REWARDS, "reward", details.pop("reward", "game"))
    for detail in details:
        check_choice("detail of an algorithm", detail, ("reward", *DETAILS))
    for needed in ("gamma", "gae_lambda"):
        if not isinstance(getattr(settings, needed, None), float):
            raise InputError(f"config of {name!r} has no {needed}; accepted: a float, needed to compute advantages")
    network = details.pop("network", NetworkConfig())
    if not isinstance(network, NetworkConfig):
        raise InputError(f"network of {name!r} is {short_repr(network)}; accepted: a NetworkConfig")
    return Recipe(_summary(build), build, settings, network, reward_config, build_reward, **details)


def _reward(name: str, build: Any, settings: Any, details: dict[str, Any]) -> Recipe:
    for detail in details:
        check_choice("detail of a reward", detail, ("network", "needs_full_view"))
    details = {"network": NetworkConfig(memory="gru"), "needs_full_view": True, **details}
    algorithm = PPOConfig(gamma=RECIPES["maxent"].config.gamma)
    return Recipe(_summary(build), PPO, algorithm, reward=settings, build_reward=build, **details)


def _settings(name: str, config: Any) -> Any:
    """Return `config` or NoSettings; raise InputError unless it is a dataclass instance."""
    if config is None:
        return NoSettings()
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise InputError(f"config of {name!r} is {short_repr(config)}; accepted: an instance of a dataclass")
    return config


def _check_names(name: str, recipe: Recipe) -> None:
    """Raise InputError if two settings of a run have the same name: they would be the same flag."""
    none: Any = NoSettings()
    own = flatten(TrainConfig(network=recipe.network, algorithm=none, reward=none, replay=recipe.replay))
    for part in (recipe.config, recipe.reward):
        for setting in flatten(part):
            if setting in own:
                raise InputError(f"config of {name!r} has a field {setting!r}, which is the name of another setting")
            own[setting] = None


def _summary(thing: Any) -> str:
    """Return the first line of the docstring."""
    return ((thing.__doc__ or "").strip().splitlines() or ["registered by the user"])[0].rstrip(".")
