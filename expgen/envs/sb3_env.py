"""Our environments as Stable-Baselines3's: `PPO("CnnPolicy", Sb3VecEnv("maze", 64, levels=200)).learn(…)`.

What an ended episode's info says is what Stable-Baselines3 looks for: `is_success`. The games do not draw the last
frame of an episode, so there is no `terminal_observation`, and a time-out is an end like any other.
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
    """`num_envs` games of `env`, made as GymnasiumVectorEnv makes them with the arguments `how` (levels, seed, …)."""

    def __init__(self, env: Any, num_envs: int = 64, **how: Any) -> None:
        self.env = GymnasiumVectorEnv(env, num_envs, **how)
        super().__init__(num_envs, self.env.single_observation_space, self.env.single_action_space)

    def __repr__(self) -> str:
        return repr(self.env).replace("GymnasiumVectorEnv", "Sb3VecEnv")

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """As Stable-Baselines3's, which draws larger seeds than our games take."""
        super().seed(seed)
        if seed is None:
            self._seeds = [each % LAST_SEED for each in self._seeds if each is not None]
        return self._seeds

    def reset(self) -> ndarray:
        """Every game at the start of an episode; after `seed`, with levels in the order of that seed."""
        obs, _ = self.env.reset(seed=self._seeds[0])
        self._reset_seeds()
        return obs

    def step_async(self, actions: ndarray) -> None:
        self.env.step_async(actions)

    def step_wait(self) -> tuple[ndarray, ndarray, ndarray, list[dict[str, Any]]]:
        seen = self.env.games.observe()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for env in np.flatnonzero(seen.first).tolist():
            infos[env] = {"is_success": bool(seen.solved[env])}
        return seen.obs.copy(), seen.reward.copy(), seen.first.copy(), infos

    def close(self) -> None:
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same of every game."""
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise InputError(f"set_attr sets {attr_name!r} of {self!r}; accepted: arguments when it is made")

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **keywords: Any) -> list[Any]:
        raise InputError(f"env_method calls {method_name!r} of {self!r}; accepted: methods of its .env")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
