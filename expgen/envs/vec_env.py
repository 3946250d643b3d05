"""The seam every environment sits behind: start a step now, collect it later.

Axes: N environments. Arrays handed out are views into buffers the environment owns and overwrites at the next
step; nothing is allocated per step. The convention is `first`, never `done`: an observation with `first` set opens
an episode, and the reward that came with it belongs to the step that ended the one before.
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

MOST_ACTIONS, MOST_OBSERVED = 2**16, 2**24  # that a file may say an environment has, and numbers in an observation


class Observation(NamedTuple):
    """What one vector step brings; numpy views, overwritten by the next step."""

    obs: ndarray  # [N, *obs_shape] uint8 pixels (height, width, channel) or float32 vectors: what the policy sees
    full: ndarray  # [N, *full_shape] what the intrinsic reward measures; `obs` itself unless the game centres its agent
    reward: ndarray  # [N] float32, paid on the way into this observation
    first: ndarray  # [N] bool, this observation opens an episode
    level: ndarray  # [N] int32, seed of the level now being played
    solved: ndarray  # [N] bool, the episode that just ended was completed; False where none ended
    timed_out: ndarray  # [N] bool, the episode that just ended, unsolved, was cut off by its time limit


def fresh_observation(obs: ndarray) -> Observation:
    """Buffers around `obs` `[N, …]` before anything is played: every episode is yet to open, and nothing was paid."""
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
    """What a network must know of an environment."""

    name: str  # as build_env takes it: "procgen:maze", "minimaze", "gymnasium:CartPole-v1"
    obs_shape: tuple[int, ...]
    obs_dtype: str  # "uint8" or "float32"
    num_actions: int
    action_classes: Mapping[str, Sequence[int]] | None = None  # actions of one effect, by name: agents.vote

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> "EnvSpec":
        """From the plain data that `dataclasses.asdict` makes of one; KeyError or TypeError where it is none."""
        check_plain_fields(EnvSpec, data, "spec")
        spec = EnvSpec(**{**data, "obs_shape": tuple(data["obs_shape"])})
        sizes = (*spec.obs_shape, spec.num_actions)
        if any(type(size) is not int or size < 0 for size in sizes) or spec.obs_dtype not in ("uint8", "float32"):
            raise TypeError("a spec of sizes and a type of numbers")
        check_range("num_actions", spec.num_actions, 1, MOST_ACTIONS)
        check_range("the size of obs_shape", math.prod(spec.obs_shape), 1, MOST_OBSERVED)
        classes = spec.action_classes or {}
        actions = [action for each in classes.values() for action in each] if isinstance(classes, Mapping) else [-1]
        if not all(type(action) is int and 0 <= action < spec.num_actions for action in actions):
            raise TypeError(f"action_classes of actions below {spec.num_actions}")
        return spec


class VecEnv(Protocol):
    """N games stepped together."""

    spec: EnvSpec
    levels: LevelSet
    num_envs: int

    def act(self, action: ndarray) -> None:
        """Start the step: `action` is [N] int32; returns at once."""

    def observe(self) -> Observation:
        """Wait for the step under way (or the initial reset); calling it again changes nothing."""

    def close(self) -> None:
        """Release threads and memory; safe to call twice."""


def checked_actions(actions: Any, num_envs: int, num_actions: int) -> ndarray:
    """`[N]` int32, or an InputError."""
    action = np.asarray(actions)
    if action.shape != (num_envs,) or action.dtype.kind not in "iu":
        what = f"actions have shape {action.shape}, type {action.dtype}"
        raise InputError(f"{what}; accepted: {num_envs} whole numbers, one for each game")
    if action.min() < 0 or action.max() >= num_actions:
        raise InputError(f"actions are {int(action.min())} to {int(action.max())}; accepted: 0 to {num_actions - 1}")
    return action.astype(np.int32)


def env_repr(env: VecEnv) -> str:
    """What an environment prints of itself."""
    return f"{type(env).__name__}({env.spec.name!r}, {env.num_envs} games, levels {env.levels})"


@runtime_checkable
class LevelControl(Protocol):
    """What level replay and evaluation ask of an environment, beyond VecEnv."""

    def play(self, env: int, level: int) -> None:
        """Put one game at the start of one level; call between `observe` and `act`.

        Rewrites that environment's `obs`, `full`, `level` and `first` in place; `reward`, `solved` and
        `timed_out` go on saying how the last episode ended. The level need not be in the environment's level set. At
        the end of that episode the environment draws from its own level set again.
        """


@runtime_checkable
class Snapshots(Protocol):
    """What exact resuming asks of an environment, beyond VecEnv."""

    def save(self) -> dict[str, ndarray]:
        """Everything the future depends on, as plain arrays; call between `observe` and `act`."""

    def restore(self, state: Mapping[str, ndarray]) -> None:
        """Continue exactly where `save` was called, in an environment made with the same arguments."""


@runtime_checkable
class Pictured(Protocol):
    """What watching asks of an environment, beyond VecEnv."""

    def picture(self, env: int) -> ndarray:
        """One game as a person would want to see it, `[H, W, 3]` uint8; call between `observe` and `act`."""


@runtime_checkable
class NamesActions(Protocol):
    """An environment that knows what its actions are called."""

    def action_names(self) -> tuple[str, ...]:
        """One name per action, or none at all."""
