"""One of our games as a Gymnasium environment: `gymnasium.make("expgen/maze", levels=200)`.

For whatever wants single environments; many are stepped several times faster by `gymnasium.make_vec`. The games do not
draw the last frame of an episode, so the last step shows the frame before it again.
"""

from typing import Any

import gymnasium
import numpy as np
from numpy import ndarray

from expgen.envs.gymnasium_vector import GymnasiumVectorEnv
from expgen.errors import InputError


class GymnasiumSingleEnv(gymnasium.Env):
    """One game of `env`; `how` are the other arguments of GymnasiumVectorEnv, but `reset` takes one level."""

    def __init__(self, env: str, **how: Any) -> None:
        if how.get("num_envs", 1) != 1:
            raise InputError(f"num_envs is {how['num_envs']}; accepted: 1, or gymnasium.make_vec for more")
        self.game = GymnasiumVectorEnv(env, **how)
        self.observation_space, self.action_space = self.game.single_observation_space, self.game.single_action_space
        self._shown: ndarray | None = None  # the frame that an episode goes on from
        self._next: tuple[ndarray, dict[str, Any]] | None = None  # the episode that has begun since the last one ended

    def __repr__(self) -> str:
        return f"GymnasiumSingleEnv({self.game.games.spec.name!r}, levels {self.game.games.levels})"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ndarray, dict[str, Any]]:
        """The start of an episode; `options={"level": N}` chooses it."""
        super().reset(seed=seed)
        if self._next is not None and seed is None and not options:
            (obs, info), self._next = self._next, None
        else:
            for name in options or {}:
                if name != "level":
                    raise InputError(f"reset has the option {name!r}; accepted: level")
            level = (options or {}).get("level")
            batch, infos = self.game.reset(seed=seed, options=None if level is None else {"levels": [level]})
            obs, info, self._next = batch[0], _of_one(infos), None
        self._shown = obs
        return obs, info

    def step(self, action: Any) -> tuple[ndarray, float, bool, bool, dict[str, Any]]:
        """One step; after the last of an episode comes `reset`."""
        if self._shown is None or self._next is not None:
            raise InputError("step was called before reset; accepted: reset first, and after every episode")
        batch, reward, terminated, truncated, infos = self.game.step(np.asarray(action)[None])
        info, has_ended = _of_one(infos), bool(terminated[0] or truncated[0])
        if has_ended:
            self._next = batch[0], {**info, "solved": False}
        else:
            self._shown = batch[0]
        return self._shown.copy(), float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def close(self) -> None:
        self.game.close()


def _of_one(infos: dict[str, ndarray]) -> dict[str, Any]:
    return {name: value[0] if value.ndim > 1 else value[0].item() for name, value in infos.items()}
