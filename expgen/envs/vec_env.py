"""The interface of every environment: `act` starts a step, `observe` waits for it.

Axes: N environments. The returned arrays are views of buffers that the environment owns and overwrites at the next
step; nothing is allocated per step. We use `first` instead of `done`: an observation with `first` set opens an episode,
and the reward in it belongs to the last step of the previous episode.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy import ndarray

from expgen.envs.levels import LevelSet
from expgen.errors import InputError, check_range
from expgen.settings import check_plain_fields

MAX_ACTIONS, MAX_OBS_SIZE = 2**16, 2**24  # limits for a spec read from a file


class Observation(NamedTuple):
    """Result of one step of N games; numpy views, overwritten by the next step."""

    obs: ndarray  # [N, *obs_shape] uint8 pixels (height, width, channel) or float32 vectors: the policy's input
    full: ndarray  # [N, *full_shape] input of the intrinsic reward; `obs` itself unless the view follows the agent
    reward: ndarray  # [N] float32, reward of the step that led to this observation
    first: ndarray  # [N] bool, this observation opens an episode
    level: ndarray  # [N] int32, seed of the current level
    solved: ndarray  # [N] bool, an episode just ended and was solved
    timed_out: ndarray  # [N] bool, an episode just ended, unsolved, because of its time limit


def initial_observation(obs: ndarray) -> Observation:
    """Return buffers around `obs` `[N, …]` before the first step: `first` is set, rewards are zero."""
    num_envs = len(obs)
    return Observation(
        obs=obs,
        full=obs,
        reward=np.zeros(num_envs, dtype=np.float32),
        first=np.ones(num_envs, dtype=bool),
        level=np.zeros(num_envs, dtype=np.int32),
        solved=np.zeros(num_envs, dtype=bool),
        timed_out=np.zeros(num_envs, dtype=bool),
    )


@dataclass(frozen=True)
class EnvSpec:
    """The facts about an environment that a network is built from."""

    name: str  # as build_env takes it: "procgen:maze", "minimaze", "gymnasium:CartPole-v1"
    obs_shape: tuple[int, ...]
    obs_dtype: str  # "uint8" or "float32"
    num_actions: int
    action_classes: Mapping[str, Sequence[int]] | None = None  # actions with the same effect, by name (agents.vote)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "EnvSpec":
        """Return the spec that `dataclasses.asdict` wrote; raise InputError, KeyError or TypeError if it is invalid."""
        check_plain_fields(EnvSpec, data, "spec")
        spec = EnvSpec(**{**data, "obs_shape": tuple(data["obs_shape"])})
        sizes = (*spec.obs_shape, spec.num_actions)
        if any(type(size) is not int or size < 0 for size in sizes) or spec.obs_dtype not in ("uint8", "float32"):
            raise TypeError("obs_shape, num_actions or obs_dtype is invalid")
        check_range("num_actions", spec.num_actions, 1, MAX_ACTIONS)
        check_range("the size of obs_shape", math.prod(spec.obs_shape), 1, MAX_OBS_SIZE)
        if spec.action_classes is not None:
            if not isinstance(spec.action_classes, Mapping):
                raise TypeError("action_classes is not an object")
            actions = [action for members in spec.action_classes.values() for action in members]
            if not all(type(action) is int and 0 <= action < spec.num_actions for action in actions):
                raise TypeError(f"action_classes has actions other than 0 to {spec.num_actions - 1}")
        return spec


class VecEnv(Protocol):
    """N games stepped together."""

    spec: EnvSpec
    levels: LevelSet
    num_envs: int

    def act(self, action: ndarray) -> None:
        """Start a step with `action`, [N] int32, and return immediately."""

    def observe(self) -> Observation:
        """Wait for the current step (or the initial reset); a second call returns the same observation."""

    def close(self) -> None:
        """Release threads and memory; safe to call twice."""


def checked_actions(actions: Any, num_envs: int, num_actions: int) -> ndarray:
    """Return `actions` as `[N]` int32; raise InputError if shape, type or values are wrong."""
    action = np.asarray(actions)
    if action.shape != (num_envs,) or action.dtype.kind not in "iu":
        what = f"actions have shape {action.shape}, type {action.dtype}"
        raise InputError(f"{what}; accepted: {num_envs} whole numbers, one for each game")
    if action.min() < 0 or action.max() >= num_actions:
        raise InputError(f"actions are {int(action.min())} to {int(action.max())}; accepted: 0 to {num_actions - 1}")
    return action.astype(np.int32)


def env_repr(env: VecEnv) -> str:
    """Return the `repr` shared by all environments."""
    return f"{type(env).__name__}({env.spec.name!r}, {env.num_envs} games, levels {env.levels})"


@runtime_checkable
class LevelControl(Protocol):
    """Optional part of an environment, used by level replay and evaluation."""

    def play(self, env: int, level: int) -> None:
        """Restart game `env` at the start of `level`; call between `observe` and `act`.

        Updates that game's `obs`, `full`, `level` and `first` in place; `reward`, `solved` and `timed_out` keep
        describing the previous episode. The level need not be in the environment's level set. When its episode ends,
        the next level is drawn from the level set again.
        """


@runtime_checkable
class Snapshots(Protocol):
    """Optional part of an environment, used for exact resuming."""

    def save(self) -> dict[str, ndarray]:
        """Return the complete state as plain arrays; call between `observe` and `act`."""

    def restore(self, state: Mapping[str, ndarray]) -> None:
        """Continue exactly where `save` was called, in an environment made with the same arguments."""


@runtime_checkable
class HasPicture(Protocol):
    """Optional part of an environment, used for recording episodes."""

    def picture(self, env: int) -> ndarray:
        """Return game `env` drawn for people, `[H, W, 3]` uint8; call between `observe` and `act`."""


@runtime_checkable
class HasActionNames(Protocol):
    """Optional part of an environment: names for its actions."""

    def action_names(self) -> tuple[str, ...]:
        """Return one name per action, or an empty tuple."""
