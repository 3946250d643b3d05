"""Gymnasium wrappers that replace the reward by r_I, so that any trainer can train an explorer.

`beta` is the weight β of r_I in r_total = β r_I + (1 − β) r_ext (Eq. 9); the default 1 is r_I alone, as for the paper's
explorer. The environment's own reward is in `info["game_reward"]`. As in training, the step that ends an episode has
r_I = 0. r_I is measured on the observation, or on `info[view]`: in our vector environments `info["full"]` is the
uncentred view.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy import ndarray

from expgen.errors import InputError, check_range
from expgen.reward.knn import KnnConfig
from expgen.reward.knn_step import KnnStepReward
from expgen.settings import check_type


class KnnRewardWrapper(gymnasium.Wrapper):
    """Replaces the reward of a single environment by β r_I + (1 − β) r_ext.

    config: settings of r_I (default `KnnConfig()`); beta: β; view: key of `info` that holds the frames to measure r_I
    on (default: the observation).
    """

    def __init__(
        self, env: gymnasium.Env, config: KnnConfig | None = None, beta: float = 1.0, view: str | None = None
    ) -> None:
        check_type("env", env, gymnasium.Env, "a Gymnasium environment (for a vector: KnnRewardVectorWrapper)")
        super().__init__(env)
        self.beta, self.view = _checked_beta(beta), view
        if view is None:
            _check_space(env.observation_space)
        self.knn = KnnStepReward(config)

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(**keywords)
        self.knn(_frame(obs, info, self.view)[None], np.ones(1, dtype=bool))
        return obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        intrinsic = float(self.knn(_frame(obs, info, self.view)[None], np.zeros(1, dtype=bool))[0])
        mixed = self.beta * (0.0 if terminated or truncated else intrinsic) + (1 - self.beta) * float(reward)
        return obs, mixed, terminated, truncated, {**info, "game_reward": reward}


class KnnRewardVectorWrapper(VectorWrapper):
    """Replaces the reward of a vector environment; config, beta and view are as in KnnRewardWrapper.

    The environment must have autoreset, in the step that ends an episode or in the next one.
    """

    def __init__(
        self, env: VectorEnv, config: KnnConfig | None = None, beta: float = 1.0, view: str | None = None
    ) -> None:
        check_type("env", env, VectorEnv, "a Gymnasium vector environment (for a single one: KnnRewardWrapper)")
        super().__init__(env)
        mode = env.metadata.get("autoreset_mode")
        if mode not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
            raise InputError(f"env has autoreset_mode {mode}; accepted: SAME_STEP or NEXT_STEP")
        self.resets_in_same_step = mode == AutoresetMode.SAME_STEP
        self.beta, self.view = _checked_beta(beta), view
        if view is None:
            _check_space(env.single_observation_space)
        self.knn = KnnStepReward(config, env.num_envs)
        self.has_ended = np.zeros(env.num_envs, dtype=bool)  # [N] in the previous step

    def reset(self, **keywords: Any) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(**keywords)
        self.has_ended[:] = False
        self.knn(_frame(obs, info, self.view), np.ones(self.num_envs, dtype=bool))
        return obs, info

    def step(self, actions: Any) -> tuple[Any, ndarray, ndarray, ndarray, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(actions)
        ends = np.logical_or(terminated, truncated)  # [N]
        intrinsic = self.knn(_frame(obs, info, self.view), ends if self.resets_in_same_step else self.has_ended)
        self.has_ended = ends
        mixed = self.beta * np.where(ends, 0, intrinsic) + (1 - self.beta) * np.asarray(reward)
        return obs, mixed.astype(np.float32), terminated, truncated, {**info, "game_reward": reward}


def _checked_beta(beta: float) -> float:
    check_type("beta", beta, (int, float), "0 to 1")
    check_range("beta", beta, 0, 1)
    return beta


def _check_space(space: gymnasium.Space) -> None:
    """Raise InputError if distances between observations of `space` are not meaningful."""
    if not isinstance(space, gymnasium.spaces.Box):
        what = " ".join(str(space).split())[:80]
        raise InputError(f"env has observations {what}; accepted: a Box, or view= naming an array in info")
    if space.dtype == np.uint8 and len(space.shape) == 3 and space.shape[0] < min(space.shape[1:]):
        raise InputError(f"env has images {space.shape}, channels first; accepted: (height, width, channels)")


def _frame(obs: Any, info: dict[str, Any], view: str | None) -> ndarray:
    """Return the array on which r_I is measured: uint8 unchanged, anything else as float32."""
    if view is not None and view not in info:
        accepted = ", ".join(info) or "None (info is empty)"
        raise InputError(f"view is {view!r}, which is not in info; accepted: {accepted}")
    frame = np.asarray(obs if view is None else info[view])
    return frame if frame.dtype == np.uint8 else frame.astype(np.float32)
