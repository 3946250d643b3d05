"""Agents that users add with `expgen.register` and select with `--learner NAME`."""

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
    """Raise InputError if `name` is reserved for learners of a run, or `make` has the wrong parameters."""
    if re.fullmatch(r"each|(member|explorer)\d*", str(name)):
        raise InputError(f"name of the agent is {name!r}, which is reserved for learners; accepted: another name")
    _check_parameters(f"agent {name!r}", make, "policies, spec, seed")


def make_own_agent(name: str, policies: dict[str, Policy], spec: EnvSpec, seed: int) -> Agent:
    """Build the agent registered as `name` from a run's `policies`; raise InputError if it fails or is not an agent."""
    try:
        agent = OWN_AGENTS[name](policies, spec, seed)
    except Exception as error:  # user code may raise anything
        raise InputError(f"agent {name!r} failed with policies {', '.join(policies)}: {error_line(error)}") from error
    act = getattr(agent, "act", None)
    if isinstance(agent, type) or not callable(act):
        raise InputError(f"agent {name!r} is {short_repr(agent)}; accepted: an object with act(obs, first, episode)")
    _check_parameters(f"act of agent {name!r}", act, "obs, first, episode")
    return agent


def _check_parameters(what: str, function: Callable[..., Any], accepted: str) -> None:
    """Raise InputError unless `function` accepts as many arguments as the list `accepted` has."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built-in functions may have no signature
        return
    try:
        signature.bind(*accepted.split(", "))
    except TypeError:
        raise InputError(f"{what} has parameters {signature}; accepted: ({accepted})") from None
