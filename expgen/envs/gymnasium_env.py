"""Any Gymnasium environment with discrete actions, behind VecEnv: `gymnasium:CartPole-v1`, or the user's own class.

A level is the seed of `reset(seed=level)`, so an environment that draws its layout from its own generator gets
explicit level sets for nothing. N single environments are stepped one after the other in Python, which is as fast as
their own Python is; whoever needs speed vectorises inside the environment. There is no Snapshots here: Gymnasium cannot
save a game, so a resumed run starts new episodes.

Where Gymnasium leaves a choice open:
- `act` keeps the actions and `observe` steps: nothing runs in between, and `act` returns at once as promised.
- A truncated episode is an ordinary end, as in ProcGen; unless it is solved, it counts as timed out.
- `solved`: what the last step's info says under `success` or `is_success`; where it says nothing, an episode that
  terminated (not truncated) with a positive last reward. CartPole pays for the step it falls on, so read its
  returns, not its `solved`.
"""

import inspect
from collections.abc import Callable, Mapping
from enum import EnumType
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.envs.levels import LevelSet, LevelStream
from expgen.envs.spaces import action_range, obs_layout
from expgen.envs.vec_env import EnvSpec, Observation, env_repr, fresh_observation
from expgen.errors import InputError, error_line


class GymnasiumEnv:
    """`num_envs` Gymnasium environments, each from a call of `make`, under one name."""

    __repr__ = env_repr

    def __init__(self, name: str, make: Callable[[], Any], levels: LevelSet, num_envs: int, seed: int):
        self._envs = [_checked(name, make()) for _ in range(num_envs)]
        self._layout = obs_layout(name, self._envs[0].observation_space)
        self._announced = tuple(self._envs[0].observation_space.shape or ())
        actions = action_range(name, self._envs[0].action_space)
        self._first_action = actions.start
        self.spec = EnvSpec(name, self._layout.shape, self._layout.dtype, len(actions))
        self.levels = levels
        self.num_envs = num_envs
        self._seen = fresh_observation(np.zeros((num_envs, *self._layout.shape), dtype=self._layout.dtype))
        self._action = np.zeros(num_envs, dtype=np.int64)  # [N] in the environment's own numbering
        self._is_stepping = False
        self._next_level = LevelStream(levels, num_envs, seed)
        for env in range(num_envs):
            self._restart(env)

    def act(self, action: ndarray) -> None:
        np.add(action, self._first_action, out=self._action)
        self._is_stepping = True

    def observe(self) -> Observation:
        if self._is_stepping:
            self._is_stepping = False
            for env, action in enumerate(self._action.tolist()):  # each is a Python object: there is no other way
                self._step(env, action)
        return self._seen

    def _show(self, env: int, obs: Any) -> None:
        """Take in an observation, if it is one of those announced."""
        announced, shape = self._announced, "unknown"
        try:
            shape = np.shape(obs)
            if shape != announced:
                raise ValueError
            self._layout.fill(self._seen.obs, env, obs)
        except (TypeError, ValueError, IndexError):
            what = f"{self.spec.name} gave an observation of shape {shape}, type {type(obs).__name__}"
            raise InputError(f"{what}; accepted: {announced}, as its observation space says") from None

    def play(self, env: int, level: int) -> None:
        seen = self._envs[env].reset(seed=level)
        if not isinstance(seen, tuple) or len(seen) != 2:
            raise InputError(f"--env is {self.spec.name!r}, whose reset gives one value; accepted: obs, info")
        self._show(env, seen[0])
        self._seen.level[env] = level
        self._seen.first[env] = True

    def picture(self, env: int) -> ndarray:
        """What the environment renders, `[H, W, 3]` uint8; only with the option render_mode="rgb_array"."""
        return np.asarray(self._envs[env].render())

    def action_names(self) -> tuple[str, ...]:
        """What the environment calls its actions, as Atari's and MiniGrid's do; empty where it has no names."""
        game = self._envs[0].unwrapped
        names: tuple[str, ...] = ()
        if hasattr(game, "get_action_meanings"):
            names = tuple(str(name).lower() for name in game.get_action_meanings())
        elif isinstance(actions := getattr(game, "actions", None), EnumType):
            names = tuple(str(name).replace("_", " ") for name in actions.__members__)
        return names if len(names) == self.spec.num_actions else ()

    def close(self) -> None:
        while self._envs:
            self._envs.pop().close()

    def _step(self, env: int, action: int) -> None:
        seen = self._envs[env].step(action)
        if len(seen) != 5:
            accepted = "accepted: obs, reward, terminated, truncated, info"
            raise InputError(f"--env is {self.spec.name!r}, whose step gives {len(seen)} values; {accepted}")
        obs, reward, terminated, truncated, info = seen
        has_ended = bool(terminated or truncated)
        self._seen.reward[env] = reward
        self._seen.first[env] = has_ended
        is_solved = has_ended and _is_solved(bool(terminated), float(reward), info)
        self._seen.solved[env] = is_solved
        self._seen.timed_out[env] = truncated and not terminated and not is_solved
        if has_ended:
            self._restart(env)
        else:
            self._show(env, obs)

    def _restart(self, env: int) -> None:
        self.play(env, int(self._next_level.next(np.array([env]))[0]))


def _is_solved(terminated: bool, reward: float, info: Mapping[str, Any]) -> bool:
    success = info.get("success", info.get("is_success"))
    return terminated and reward > 0 if success is None else bool(success)


def is_gymnasium(env: Any) -> bool:
    """Whether `env` is a Gymnasium environment, made already."""
    parts = ("reset", "step", "observation_space", "action_space", "unwrapped")
    return not isinstance(env, type) and all(hasattr(env, part) for part in parts)


def make_registered(env_id: str, options: Mapping[str, Any]) -> Any:
    """One environment of Gymnasium's registry; `options` go to `gymnasium.make`."""
    import gymnasium

    name = f"gymnasium:{env_id}"
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **options)
    except Exception as error:  # whatever its code does when it is made; --debug shows where
        accepted = f"the ID of a Gymnasium environment{' and options that it takes' if options else ''}"
        raise InputError(f"--env is {name!r}; accepted: {accepted} ({error_line(error)})") from error


def _checked(name: str, env: Any) -> Any:
    """`env` if it is an environment whose reset takes a seed."""
    if not is_gymnasium(env):
        what = f"--env is {name!r}, which makes a {type(env).__name__}"
        raise InputError(f"{what}; accepted: a Gymnasium environment, or a VecEnv from a function that takes num_envs")
    parameters = inspect.signature(env.reset).parameters
    if "seed" not in parameters and not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        raise InputError(f"--env is {name!r}, whose reset takes no seed; accepted: reset(seed=LEVEL)")
    return env
