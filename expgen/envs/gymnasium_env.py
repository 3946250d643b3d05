"""Any Gymnasium environment with discrete actions, behind VecEnv: `gymnasium:CartPole-v1`, or a class of the user.

A level is the seed of `reset(seed=level)`, so level sets work for every environment that draws its layout from its own
generator. N single environments are stepped one after the other in Python; fast environments should implement VecEnv
directly. There is no Snapshots: Gymnasium cannot save a game, so a resumed run starts new episodes.

Our choices where Gymnasium leaves one open:
- `act` stores the actions and `observe` steps, since `act` must return immediately.
- A truncated episode ends like any other, as in ProcGen; unless it is solved, it counts as timed out.
- `solved`: `success` or `is_success` in the last step's info; without these, an episode that terminated (not truncated)
  with a positive last reward. CartPole also pays for the step in which the pole falls, so use its return, not `solved`.
"""

import inspect
from collections.abc import Callable, Mapping
from enum import EnumType
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.envs.levels import LevelSet, LevelStream
from expgen.envs.spaces import action_range, obs_layout
from expgen.envs.vec_env import EnvSpec, Observation, env_repr, initial_observation
from expgen.errors import InputError, error_line


class GymnasiumEnv:
    """`num_envs` Gymnasium environments, each made by one call of `make`."""

    __repr__ = env_repr

    def __init__(self, name: str, make: Callable[[], Any], levels: LevelSet, num_envs: int, seed: int):
        self._envs = [_validated(name, make()) for _ in range(num_envs)]
        self._layout = obs_layout(name, self._envs[0].observation_space)
        self._space_shape = tuple(self._envs[0].observation_space.shape or ())
        actions = action_range(name, self._envs[0].action_space)
        self._first_action = actions.start
        self.spec = EnvSpec(name, self._layout.shape, self._layout.dtype, len(actions))
        self.levels, self.num_envs = levels, num_envs
        self._observation = initial_observation(np.zeros((num_envs, *self._layout.shape), dtype=self._layout.dtype))
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
            for env, action in enumerate(self._action.tolist()):
                self._step(env, action)
        return self._observation

    def _write_obs(self, env: int, obs: Any) -> None:
        """Copy `obs` to the buffer; raise InputError if it does not match the observation space."""
        shape: Any = "unknown"
        try:
            shape = np.shape(obs)
            if shape != self._space_shape:
                raise ValueError
            self._layout.fill(self._observation.obs, env, obs)
        except (TypeError, ValueError, IndexError):
            what = f"{self.spec.name} returned an observation of shape {shape}, type {type(obs).__name__}"
            raise InputError(f"{what}; accepted: {self._space_shape}, as its observation space says") from None

    def play(self, env: int, level: int) -> None:
        result = self._envs[env].reset(seed=level)
        if not isinstance(result, tuple) or len(result) != 2:
            raise InputError(f"--env is {self.spec.name!r}, whose reset does not return a pair; accepted: obs, info")
        self._write_obs(env, result[0])
        self._observation.level[env] = level
        self._observation.first[env] = True

    def picture(self, env: int) -> ndarray:
        """Return what the environment renders, `[H, W, 3]` uint8; needs the option render_mode="rgb_array"."""
        return np.asarray(self._envs[env].render())

    def action_names(self) -> tuple[str, ...]:
        """Return the environment's names for its actions, as Atari and MiniGrid have them, or an empty tuple."""
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
        result = self._envs[env].step(action)
        if len(result) != 5:
            accepted = "accepted: obs, reward, terminated, truncated, info"
            raise InputError(f"--env is {self.spec.name!r}, whose step returns {len(result)} values; {accepted}")
        obs, reward, terminated, truncated, info = result
        has_ended = bool(terminated or truncated)
        is_solved = has_ended and _is_solved(bool(terminated), float(reward), info)
        self._observation.reward[env] = reward
        self._observation.first[env] = has_ended
        self._observation.solved[env] = is_solved
        self._observation.timed_out[env] = truncated and not terminated and not is_solved
        if has_ended:
            self._restart(env)
        else:
            self._write_obs(env, obs)

    def _restart(self, env: int) -> None:
        self.play(env, int(self._next_level.next(np.array([env]))[0]))


def _is_solved(terminated: bool, reward: float, info: Mapping[str, Any]) -> bool:
    success = info.get("success", info.get("is_success"))
    return terminated and reward > 0 if success is None else bool(success)


def is_gymnasium(env: Any) -> bool:
    """Return whether `env` is an instance of a Gymnasium environment."""
    parts = ("reset", "step", "observation_space", "action_space", "unwrapped")
    return not isinstance(env, type) and all(hasattr(env, part) for part in parts)


def make_registered(env_id: str, options: Mapping[str, Any]) -> Any:
    """Make one environment of Gymnasium's registry; `options` are passed to `gymnasium.make`."""
    import gymnasium

    try:
        return gymnasium.make(env_id, disable_env_checker=True, **options)
    except Exception as error:  # user code may raise anything; --debug shows the traceback
        accepted = f"the ID of a Gymnasium environment{' and options that it takes' if options else ''}"
        raise InputError(f"--env is 'gymnasium:{env_id}'; accepted: {accepted} ({error_line(error)})") from error


def _validated(name: str, env: Any) -> Any:
    """Return `env`; raise InputError if it is not a Gymnasium environment whose reset takes a seed."""
    if not is_gymnasium(env):
        what = f"--env is {name!r}, which makes a {type(env).__name__}"
        raise InputError(f"{what}; accepted: a Gymnasium environment, or a VecEnv from a function that takes num_envs")
    parameters = inspect.signature(env.reset).parameters
    if "seed" not in parameters and not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        raise InputError(f"--env is {name!r}, whose reset takes no seed; accepted: reset(seed=LEVEL)")
    return env
