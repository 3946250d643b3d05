"""`agent.predict`, as Stable-Baselines3 asks its models: whoever can evaluate those can evaluate ours.

Our agents remember by themselves (`act`). Here the memory goes in and comes out: it is copied out after each step and
put back before the next, so one agent may play several games in turn, each with the state that belongs to it.
"""

import copy
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.text import short_repr

_REMEMBERED = ("clock", "state", "explore_steps", "acted_frames")  # attributes in which our agents keep what they know


class Predicts:
    """Gives an agent `predict`; it has `act`, and may have `spec`."""

    def predict(
        self, obs: ndarray, state: Any = None, episode_start: ndarray | None = None, deterministic: bool = False
    ) -> tuple[ndarray, Any]:
        """Actions `[N]` for observations `[N, …]`, and the state to hand in next time.

        state: what the call before returned; None begins anew, with every environment at the start of an episode.
        episode_start: `[N]` where an observation opens an episode; by default nowhere but with `state=None`.
        deterministic: False; our agents sample their actions, as the paper's do.

        One observation without the axis of environments is answered with one action.
        """
        if not isinstance(deterministic, (bool, np.bool_)) or deterministic:
            raise InputError(f"deterministic is {short_repr(deterministic)}; accepted: False, for agents sample")
        batch, is_one = _batch(obs, getattr(self, "spec", None))
        first = _starts(np.zeros(len(batch)) if episode_start is None else episode_start, len(batch))
        if not isinstance(state, AgentState | None):
            raise InputError(f"state is {type(state).__name__}; accepted: None, or what predict returned")
        if state is None:
            first[:] = True
        elif state.owner != (owner := _owner(self, len(batch))):
            raise InputError(f"state is that of {state.owner}; accepted: that of {owner}")
        (state or AgentState()).put_into(self)
        action = self.act(batch, first)  # type: ignore[attr-defined]
        return (action[0] if is_one else action), AgentState(self, len(batch))


def _batch(obs: Any, spec: EnvSpec | None) -> tuple[ndarray, bool]:
    """Observations `[N, …]` of `spec`, where that is known, and whether `obs` was one without the axis N."""
    accepted = f"{spec.obs_dtype} of shape (N, {', '.join(map(str, spec.obs_shape))})" if spec else "an array [N, …]"
    try:
        batch = np.asarray(obs)
    except ValueError:
        raise InputError(f"obs is {short_repr(obs)}, no array; accepted: {accepted}") from None
    is_one = spec is not None and batch.shape == spec.obs_shape
    batch = batch[None] if is_one else batch
    if not batch.ndim or (spec and (batch.shape[1:] != spec.obs_shape or batch.dtype != spec.obs_dtype)):
        raise InputError(f"obs is {batch.dtype} of shape {batch.shape}; accepted: {accepted}")
    return batch, is_one


def _starts(episode_start: Any, num_envs: int) -> ndarray:
    """`episode_start` as `[N]` of bool; numbers that are 0 or 1 will do."""
    try:
        first = np.atleast_1d(np.asarray(episode_start))
        is_claim = first.dtype.kind in "biuf" and np.isin(first, (0, 1)).all()
    except ValueError:
        is_claim = False
    if not is_claim:
        raise InputError(f"episode_start is {short_repr(episode_start)}; accepted: {num_envs} of True or False")
    if first.shape != (num_envs,):
        raise InputError(f"episode_start has shape {first.shape}; accepted: ({num_envs},)")
    return first.astype(bool)


class AgentState:
    """A copy of what an agent and the agents inside it remember; of `None` it is nothing yet."""

    def __init__(self, agent: Any = None, num_envs: int = 0) -> None:
        self.owner = _owner(agent, num_envs)
        known = {name: getattr(agent, name) for name in _REMEMBERED if hasattr(agent, name)}
        self._known = copy.deepcopy(known)
        self._inside = [AgentState(part) for part in _agents_in(agent)]

    def __repr__(self) -> str:
        return f"AgentState({', '.join(self._known) or 'new'})"

    def put_into(self, agent: Any) -> None:
        """Have `agent` remember this; nothing means that it numbers its episodes from the first again."""
        if not self._known and hasattr(agent, "clock"):
            agent.clock = type(agent.clock)()
        for name, value in copy.deepcopy(self._known).items():
            setattr(agent, name, value)
        parts = _agents_in(agent)
        for part, state in zip(parts, self._inside or [AgentState() for _ in parts], strict=True):
            state.put_into(part)


def _owner(agent: Any, num_envs: int) -> str:
    """Whose state fits: agents of one kind with memories of one size, in as many environments."""

    def kind(agent: Any) -> str:
        size = getattr(getattr(agent, "policy", None), "state_size", 0)
        inside = [*([f"memory {size}"] if size else []), *map(kind, _agents_in(agent))]
        return type(agent).__name__ + (f" ({', '.join(inside)})" if inside else "")

    return f"{kind(agent)} in {num_envs} environments"


def _agents_in(agent: Any) -> list[Any]:
    """Who acts for it at times: a consensus agent's explorer, or explorers that take turns."""
    return [part for part in (getattr(agent, "fallback", None), *getattr(agent, "agents", ())) if part is not None]
