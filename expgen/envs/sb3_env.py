"""Our environments as Stable-Baselines3 environments: `PPO("CnnPolicy", Sb3VecEnv("maze", 64, levels=200)).learn(…)`.

The info of an ended episode has `is_success`, which Stable-Baselines3 logs. The games do not draw the last frame of an
episode, so there is no `terminal_observation`, and a time-out is an ordinary end.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.envs.gymnasium_vector import GymnasiumVectorEnv
from expgen.errors import InputError
from expgen.settings import LAST_SEED

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError:
    raise InputError("Sb3VecEnv needs Stable-Baselines3: pip install 'expgen[sb3]'") from None


class Sb3VecEnv(VecEnv):
    """`num_envs` games of `env`; `keywords` are the other arguments of GymnasiumVectorEnv (levels, seed, …)."""

    def __init__(self, env: Any, num_envs: int = 64, **keywords: Any) -> None:
        self.env = GymnasiumVectorEnv(env, num_envs, **keywords)
        super().__init__(num_envs, self.env.single_observation_space, self.env.single_action_space)

    def __repr__(self) -> str:
        return repr(self.env).replace("GymnasiumVectorEnv", "Sb3VecEnv")

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seeds for the next reset; random ones are reduced to the range that our games accept."""
        super().seed(seed)
        if seed is None:
            self._seeds = [value % LAST_SEED for value in self._seeds if value is not None]
        return self._seeds

    def reset(self) -> ndarray:
        """Start a new episode in every game; after `seed`, with the levels in the order of that seed."""
        obs, _ = self.env.reset(seed=self._seeds[0])
        self._reset_seeds()
        return obs

    def step_async(self, actions: ndarray) -> None:
        self.env.step_async(actions)

    def step_wait(self) -> tuple[ndarray, ndarray, ndarray, list[dict[str, Any]]]:
        observation = self.env.games.observe()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for env in np.flatnonzero(observation.first).tolist():
            infos[env] = {"is_success": bool(observation.solved[env])}
        return observation.obs.copy(), observation.reward.copy(), observation.first.copy(), infos

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise InputError(f"set_attr is not supported by {self!r}; set {attr_name!r} when you make it")

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **keywords: Any) -> list[Any]:
        raise InputError(f"env_method is not supported by {self!r}; call {method_name!r} of its .env")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
