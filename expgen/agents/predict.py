"""`agent.predict`, as Stable-Baselines3 asks its models: whoever can evaluate those can evaluate ours.

Our agents remember by themselves (`act`). Here the memory goes in and comes out: it is copied out after each step and
put back before the next, so one agent may play several games in turn, each with the state that belongs to it.
"""

import copy
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.errors import InputError

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
        spec, obs = getattr(self, "spec", None), np.asarray(obs)
        if deterministic:
            raise InputError("deterministic is True; accepted: False, for agents sample their actions")
        is_one = spec is not None and obs.shape == spec.obs_shape
        batch = obs[None] if is_one else obs
        if spec is not None and (batch.shape[1:] != spec.obs_shape or batch.dtype != spec.obs_dtype):
            accepted = f"{spec.obs_dtype} of shape (N, {', '.join(map(str, spec.obs_shape))})"
            raise InputError(f"obs is {obs.dtype} of shape {obs.shape}; accepted: {accepted}")
        first = np.full(len(batch), state is None)
        if state is not None and episode_start is not None:
            first = np.atleast_1d(np.asarray(episode_start)).astype(bool)
        if first.shape != (len(batch),):
            raise InputError(f"episode_start has shape {first.shape}; accepted: ({len(batch)},)")
        if state is not None and not isinstance(state, AgentState):
            raise InputError(f"state is {type(state).__name__}; accepted: None, or what predict returned")
        (state or AgentState()).put_into(self)
        action = self.act(batch, first)  # type: ignore[attr-defined]
        return (action[0] if is_one else action), AgentState(self)


class AgentState:
    """A copy of what an agent and the agents inside it remember; of `None` it is nothing yet."""

    def __init__(self, agent: Any = None) -> None:
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


def _agents_in(agent: Any) -> list[Any]:
    """Who acts for it at times: a consensus agent's explorer, or explorers that take turns."""
    return [part for part in (getattr(agent, "fallback", None), *getattr(agent, "agents", ())) if part is not None]
