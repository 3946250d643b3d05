"""Agents of the user's own, by the name that `expgen.register` gave them: `--learner NAME`."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from expgen.agents.agent import Agent
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError, error_line
from expgen.networks.actor_critic import Policy
from expgen.text import short_repr

OWN_AGENTS: dict[str, Callable[[dict[str, Policy], EnvSpec, int], Any]] = {}


def check_own_agent(name: str, make: Callable[..., Any]) -> None:
    """An InputError where `name` means learners of a run, or `make` does not take what agents are made of."""
    if re.fullmatch(r"each|(member|explorer)\d*", str(name)):
        raise InputError(f"name of the agent is {name!r}, which means learners of a run; accepted: another name")
    _check_takes(f"agent {name!r}", make, "policies, spec, seed")


def make_own_agent(name: str, policies: dict[str, Policy], spec: EnvSpec, seed: int) -> Agent:
    """What is registered as `name`, over a run's `policies`; an InputError where that is no agent."""
    try:
        agent = OWN_AGENTS[name](policies, spec, seed)
    except Exception as error:  # whatever the user's code does
        raise InputError(f"agent {name!r} fails over {', '.join(policies)}: {error_line(error)}") from error
    act = getattr(agent, "act", None)
    if isinstance(agent, type) or not callable(act):
        raise InputError(f"agent {name!r} is {short_repr(agent)}; accepted: what has act(obs, first, episode)")
    _check_takes(f"act of agent {name!r}", act, "obs, first, episode")
    return agent


def _check_takes(what: str, function: Callable[..., Any], accepted: str) -> None:
    """An InputError unless `function` can be called with as many arguments as `accepted` names."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # it does not tell
        return
    try:
        signature.bind(*accepted.split(", "))
    except TypeError:
        raise InputError(f"{what} takes {signature}; accepted: ({accepted})") from None
