"""`agent.predict` with the signature of Stable-Baselines3's models, so that its evaluation code accepts our agents.

`act` keeps an agent's memory inside the agent. `predict` takes the memory as an argument and returns it: it is restored
before each step and copied afterwards, so one agent can play several environments in turn, each with its own state.
"""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.random import EpisodeClock
from expgen.text import short_repr

_STATE_ATTRIBUTES = ("clock", "state", "explore_steps", "acted_frames")  # what our agents carry between steps


class PredictMixin:
    """Adds `predict` to an agent that has `act` and, optionally, `spec`."""

    def predict(
        self, obs: ndarray, state: Any = None, episode_start: ndarray | None = None, deterministic: bool = False
    ) -> tuple[ndarray, Any]:
        """Return actions `[N]` for observations `[N, …]`, and the state to pass to the next call.

        state: the state that the previous call returned; None resets the agent and starts an episode everywhere.
        episode_start: `[N]`, whether an observation is the first of an episode; by default False unless `state=None`.
        deterministic: must be False, because our agents sample their actions, as the paper's do.

        A single observation without the batch axis gives a single action.
        """
        if not isinstance(deterministic, (bool, np.bool_)) or deterministic:
            raise InputError(f"deterministic is {short_repr(deterministic)}; accepted: False, because agents sample")
        batch, is_single = _batch(obs, getattr(self, "spec", None))
        first = _starts(np.zeros(len(batch)) if episode_start is None else episode_start, len(batch))
        if state is None:
            first[:] = True
            for agent in _with_inner_agents(self):
                if isinstance(getattr(agent, "clock", None), EpisodeClock):
                    agent.clock = EpisodeClock()
        elif not isinstance(state, AgentState):
            raise InputError(f"state is {type(state).__name__}; accepted: None, or the state that predict returned")
        elif state.owner != (owner := _owner(self, len(batch))):
            raise InputError(f"state belongs to {state.owner}; accepted: a state of {owner}")
        else:
            state.restore(self)
        action = self.act(batch, first)  # type: ignore[attr-defined]
        return (action[0] if is_single else action), AgentState(self, len(batch))


def _batch(obs: Any, spec: EnvSpec | None) -> tuple[ndarray, bool]:
    """Return `obs` as an array `[N, …]` that fits `spec`, and whether it was a single observation."""
    accepted = f"{spec.obs_dtype} of shape (N, {', '.join(map(str, spec.obs_shape))})" if spec else "an array [N, …]"
    try:
        batch = np.asarray(obs)
    except ValueError:
        raise InputError(f"obs is {short_repr(obs)}; accepted: {accepted}") from None
    is_single = spec is not None and batch.shape == spec.obs_shape
    batch = batch[None] if is_single else batch
    if not batch.ndim or (spec and (batch.shape[1:] != spec.obs_shape or batch.dtype != spec.obs_dtype)):
        raise InputError(f"obs is {batch.dtype} of shape {batch.shape}; accepted: {accepted}")
    return batch, is_single


def _starts(episode_start: Any, num_envs: int) -> ndarray:
    """Return `episode_start` as `[N]` bool; it may also hold the numbers 0 and 1."""
    try:
        first = np.atleast_1d(np.asarray(episode_start))
        is_bool = first.dtype.kind in "biuf" and np.isin(first, (0, 1)).all()
    except ValueError:
        is_bool = False
    if not is_bool:
        raise InputError(f"episode_start is {short_repr(episode_start)}; accepted: {num_envs} booleans")
    if first.shape != (num_envs,):
        raise InputError(f"episode_start has shape {first.shape}; accepted: ({num_envs},)")
    return first.astype(bool)


class AgentState:
    """A copy of the memory of an agent and of the agents inside it."""

    def __init__(self, agent: Any, num_envs: int) -> None:
        self.owner = _owner(agent, num_envs)
        self._saved = [
            {name: copy.deepcopy(getattr(part, name)) for name in _STATE_ATTRIBUTES if hasattr(part, name)}
            for part in _with_inner_agents(agent)
        ]

    def __repr__(self) -> str:
        return f"AgentState({self.owner})"

    def restore(self, agent: Any) -> None:
        """Put the memory back into `agent`."""
        for part, saved in zip(_with_inner_agents(agent), self._saved, strict=True):
            for name, value in saved.items():
                setattr(part, name, copy.deepcopy(value))


def _owner(agent: Any, num_envs: int) -> str:
    """Describe the agents that can use a state: their classes, memory sizes and number of environments."""
    names = []
    for part in _with_inner_agents(agent):
        size = getattr(getattr(part, "policy", None), "state_size", 0)
        names.append(type(part).__name__ + (f" (memory {size})" if size else ""))
    return f"{' with '.join(names)} in {num_envs} environments"


def _with_inner_agents(agent: Any) -> Iterator[Any]:
    """Yield `agent`, then the agents inside it: the fallback of a consensus agent, or policies that take turns."""
    yield agent
    for part in (getattr(agent, "fallback", None), *getattr(agent, "agents", ())):
        if part is not None:
            yield from _with_inner_agents(part)
