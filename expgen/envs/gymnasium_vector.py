"""Our environments as Gymnasium environments: `gymnasium.make_vec("expgen/maze", num_envs=64, levels=200)`.

Our choices where Gymnasium leaves one open, or our games differ from what it expects:
- An ended episode restarts within the step (SAME_STEP): the observation is the first of the next level. The games do
  not draw the last frame of an episode, so there is no `final_obs`. A timed-out episode is `truncated`.
- `info` has for every game the current `level` and `solved`, whether an episode just ended and was solved; with
  `full_view=True` also `full`, the uncentred view.
- `reset(seed=…)` restarts all games with the levels in the order of that seed; `reset(options={"levels": […]})` starts
  each game at the given level, which need not be in the level set.
- Observations and all other arrays are copies.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy import ndarray

from expgen.envs.levels import SEED_LIMIT, LevelSet
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec, LevelControl, Observation, VecEnv, checked_actions
from expgen.errors import InputError, check_choice, check_range
from expgen.settings import LAST_SEED, check_integer


class GymnasiumVectorEnv(VectorEnv):
    """`num_envs` games of `env`; the arguments are those of `make_env`."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(
        self,
        env: Any,
        num_envs: int = 1,
        levels: LevelSet | str | int | Iterable[int] = "all",
        seed: int = 0,
        threads: int = 1,
        full_view: bool = False,
        **options: Any,
    ) -> None:
        options |= {"threads": threads, "full_view": full_view}
        self._make = partial(make_env, env, LevelSet.parse(levels), num_envs, **options)
        self.num_envs, self._seed, self._full_view = num_envs, seed, full_view
        self.games: VecEnv = self._make(seed=seed)
        self.single_observation_space = observation_space(self.games.spec)
        self.single_action_space = gymnasium.spaces.Discrete(self.games.spec.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._is_unused = True  # no step since the games were made

    def __repr__(self) -> str:
        return f"GymnasiumVectorEnv({self.games.spec.name!r}, {self.num_envs} games, levels {self.games.levels})"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ndarray, dict[str, ndarray]]:
        levels = self._requested_levels(options or {})
        if seed is not None:
            seed = check_integer("seed", seed, 0, LAST_SEED)
        super().reset(seed=seed)
        if (seed is not None and seed != self._seed) or not self._is_unused:
            self._seed = int(self.np_random.integers(LAST_SEED)) if seed is None else seed
            self.games.close()
            self.games = self._make(seed=self._seed)
            self._is_unused = True
        observation = self.games.observe()
        for env, level in enumerate(levels):
            self.games.play(env, level)  # type: ignore[attr-defined]
            self._is_unused = False
        return observation.obs.copy(), self._info(observation)

    def step_async(self, actions: ndarray) -> None:
        self.games.act(checked_actions(actions, self.num_envs, self.games.spec.num_actions))
        self._is_unused = False

    def step(self, actions: ndarray) -> tuple[ndarray, ndarray, ndarray, ndarray, dict[str, ndarray]]:
        self.step_async(actions)
        observation = self.games.observe()
        truncated = observation.timed_out.copy()
        terminated = observation.first & ~truncated
        return observation.obs.copy(), observation.reward.copy(), terminated, truncated, self._info(observation)

    def close_extras(self, **keywords: Any) -> None:
        self.games.close()

    def _info(self, observation: Observation) -> dict[str, ndarray]:
        info = {"level": observation.level.copy(), "solved": observation.solved.copy()}
        return info | ({"full": observation.full.copy()} if self._full_view else {})

    def _requested_levels(self, options: dict[str, Any]) -> list[int]:
        levels = _only_option(options, "levels")
        if levels is None:
            return []
        if not isinstance(self.games, LevelControl):
            raise InputError(f"levels is {levels} but {self.games.spec.name} cannot choose levels; accepted: None")
        array = np.asarray(levels)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise InputError(f"levels is {levels}; accepted: {self.num_envs} whole numbers, one for each game")
        for level in (int(array.min()), int(array.max())):
            check_range("levels", level, 0, SEED_LIMIT - 1)
        return array.tolist()


def observation_space(spec: EnvSpec) -> gymnasium.spaces.Box:
    """Return the observation space of one game."""
    if spec.obs_dtype == "uint8":
        return gymnasium.spaces.Box(0, 255, spec.obs_shape, np.uint8)
    return gymnasium.spaces.Box(-np.inf, np.inf, spec.obs_shape, np.float32)


class GymnasiumSingleEnv(gymnasium.Env):
    """One game of `env`, for code that needs single environments: `gymnasium.make("expgen/maze", levels=200)`.

    `keywords` are the other arguments of GymnasiumVectorEnv, but `reset` takes one level. `gymnasium.make_vec` steps
    many games several times faster. The last step of an episode repeats the previous frame.
    """

    def __init__(self, env: str, **keywords: Any) -> None:
        if keywords.get("num_envs", 1) != 1:
            raise InputError(f"num_envs is {keywords['num_envs']}; accepted: 1, or gymnasium.make_vec for more")
        self.game = GymnasiumVectorEnv(env, **keywords)
        self.observation_space, self.action_space = self.game.single_observation_space, self.game.single_action_space
        self._obs: ndarray | None = None  # latest frame of the current episode
        self._next: tuple[ndarray, dict[str, Any]] | None = None  # start of the next episode, after the end of one

    def __repr__(self) -> str:
        return f"GymnasiumSingleEnv({self.game.games.spec.name!r}, levels {self.game.games.levels})"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ndarray, dict[str, Any]]:
        """Start a new episode; `options={"level": N}` chooses its level."""
        seed = None if seed is None else check_integer("seed", seed, 0, LAST_SEED)
        super().reset(seed=seed)
        options = options or {}
        if self._next is not None and seed is None and not options:
            obs, info = self._next
        else:
            level = _only_option(options, "level")
            batch, infos = self.game.reset(seed=seed, options=None if level is None else {"levels": [level]})
            obs, info = batch[0], _info_of_one(infos)
        self._obs, self._next = obs, None
        return obs, info

    def step(self, action: Any) -> tuple[ndarray, float, bool, bool, dict[str, Any]]:
        """Take one step; call `reset` after the last step of an episode."""
        if self._obs is None or self._next is not None:
            raise InputError("step was called before reset; call reset first, and after every episode")
        batch, reward, terminated, truncated, infos = self.game.step(np.asarray(action)[None])
        info = _info_of_one(infos)
        if terminated[0] or truncated[0]:
            self._next = batch[0], {**info, "solved": False}
        else:
            self._obs = batch[0]
        return self._obs.copy(), float(reward[0]), bool(terminated[0]), bool(truncated[0]), info

    def close(self) -> None:
        self.game.close()


def _only_option(options: dict[str, Any], accepted: str) -> Any:
    for name in options:
        check_choice("option of reset", name, [accepted])
    return options.get(accepted)


def _info_of_one(infos: dict[str, ndarray]) -> dict[str, Any]:
    return {name: value[0] if value.ndim > 1 else value[0].item() for name, value in infos.items()}
