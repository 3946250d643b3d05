"""expgen.register: algorithms, rewards, encoders, agents and environments of the user's own, by name."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

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

T = TypeVar("T")
Kind = Literal["algorithm", "reward", "encoder", "agent", "env"]
DETAILS = ("network", "run", "needs_full_view", "needs_pictures", "make_networks", "build_policy", "build_levels")


@dataclass(frozen=True)
class NoSettings:
    """Of what has none."""


def register(kind: Kind, name: str, thing: Any = None, config: Any = None, **details: Any) -> Any:
    """Let the command line, run folders and Python mean `thing` by `name`. Without `thing` it is a decorator.

    kind: what it is, and so how it is made and what the name then means:
        "algorithm": `thing(policy, config)`, an `Algorithm`. `--algo NAME`; `--algo expgen-NAME` is ExpGen over such
            members, if they have no memory.
        "reward": `thing(config, num_envs)`, a `RewardSource`. `--algo NAME` is PPO with a GRU that learns from it;
            `--algo expgen+NAME` is ExpGen with such an explorer.
        "encoder": `thing(obs_shape, features)`, a module. `--encoder NAME`.
        "agent": `thing(policies, spec, seed)`, of a run's policies by name, an `Agent`. `--learner NAME` of `evaluate`
            and `play`.
        "env": as `register_env`.
    name: letters, digits, `_`, `.` and `-`; an agent cannot be called as learners are (`member0`, `explorer`, `each`).
    config: settings of an algorithm or a reward, a frozen dataclass whose fields become flags; an algorithm's has
        `gamma` and `gae_lambda`.
    details: of an algorithm: `reward`, the name of one that is registered or `game`, and fields of `Recipe` (DETAILS).
    """
    check_choice("kind", kind, get_args(Kind))
    origin = caller()

    def keep(thing: T) -> T:
        if not callable(thing):
            raise InputError(f"{kind} {name!r} is {short_repr(thing)}; accepted: a class or function")
        if kind in ("algorithm", "reward"):
            recipe = (_algorithm if kind == "algorithm" else _reward)(name, thing, _settings(name, config), details)
            _check_names(name, recipe)
            add(RECIPES, kind, name, recipe, origin)
            if kind == "reward":
                REWARDS[name] = recipe.reward, thing
        elif given := [*(["config"] if config is not None else []), *details]:
            raise InputError(f"{given[0]} is given for {name!r}; accepted: for algorithms and rewards alone")
        elif kind == "env":
            register_env_from(name, thing, origin)
        elif kind == "encoder" and name in ENCODERS:
            raise InputError(f"name of the encoder is {name!r}, which is taken; accepted: another name")
        else:
            if kind == "agent":
                check_own_agent(name, thing)
            table: dict[str, Any] = OWN_ENCODERS if kind == "encoder" else OWN_AGENTS
            add(table, kind, name, thing, origin)
        return thing

    return keep if thing is None else keep(thing)


def _algorithm(name: str, build: Any, settings: Any, details: dict[str, Any]) -> Recipe:
    details = dict(details)
    reward_config, build_reward = find(REWARDS, "reward", details.pop("reward", "game"))
    for detail in details:
        check_choice("detail of an algorithm", detail, ("reward", *DETAILS))
    for needed in ("gamma", "gae_lambda"):
        if not isinstance(getattr(settings, needed, None), float):
            raise InputError(f"config of {name!r} has no {needed}; accepted: a number, which advantages are made with")
    network = details.pop("network", NetworkConfig())
    if not isinstance(network, NetworkConfig):
        raise InputError(f"network of {name!r} is {short_repr(network)}; accepted: a NetworkConfig")
    return Recipe(_summary(build), build, settings, network, reward_config, build_reward, **details)


def _reward(name: str, build: Any, settings: Any, details: dict[str, Any]) -> Recipe:
    for detail in details:
        check_choice("detail of a reward", detail, ("network", "needs_full_view"))
    details = {"network": NetworkConfig(memory="gru"), "needs_full_view": True, **details}
    learns = PPOConfig(gamma=RECIPES["maxent"].config.gamma)
    return Recipe(_summary(build), PPO, learns, reward=settings, build_reward=build, **details)


def _settings(name: str, config: Any) -> Any:
    """`config`, if it is one."""
    if config is None:
        return NoSettings()
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise InputError(f"config of {name!r} is {short_repr(config)}; accepted: an object of a dataclass")
    return config


def _check_names(name: str, recipe: Recipe) -> None:
    """Settings are flags, so no two of a run may have the same name."""
    own = flatten(TrainConfig(network=recipe.network, algorithm=NoSettings(), reward=NoSettings()))  # type: ignore[arg-type]
    for part in (recipe.config, recipe.reward):
        for setting in flatten(part):
            if setting in own:
                raise InputError(f"config of {name!r} has a field {setting!r}, which another setting is called")
            own[setting] = None


def _summary(thing: Any) -> str:
    """The first line of its docstring."""
    return ((thing.__doc__ or "").strip().splitlines() or ["registered by a module of the user's"])[0].rstrip(".")
