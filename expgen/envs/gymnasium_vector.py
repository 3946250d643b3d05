"""Our environments as Gymnasium's: `gymnasium.make_vec("expgen/maze", num_envs=64, levels=200)`, for any trainer.

Where Gymnasium leaves a choice open, or our games do not do what it expects:
- An ended episode restarts within the step (SAME_STEP): the observation is the first of the next level. The games do
  not draw the last frame of an episode, so there is no `final_obs`. One cut off by its time limit is `truncated`.
- `info` has of every game the `level` now being played and whether the episode that just ended was `solved`; with
  `full_view=True` also `full`, the view in which the agent moves and not the picture.
- `reset(seed=…)` begins anew with levels drawn in the order of that seed; `reset(options={"levels": […]})` puts each
  game at the start of the level of your choice, be it in the set or not.
- Observations and all else are copies, which the next step leaves alone.
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
from expgen.errors import InputError, check_range
from expgen.settings import LAST_SEED, check_integer


class GymnasiumVectorEnv(VectorEnv):
    """`num_envs` games of `env`, as `make_env` takes it, which also says what the other arguments are."""

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
        self._make = partial(
            make_env, env, LevelSet.parse(levels), num_envs, threads=threads, full_view=full_view, **options
        )
        self._seed, self._full_view = seed, full_view
        self.games: VecEnv = self._make(seed=seed)
        self.num_envs = num_envs
        self.single_observation_space = observation_space(self.games.spec)
        self.single_action_space = gymnasium.spaces.Discrete(self.games.spec.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._is_fresh = True  # nobody has stepped since the games were made

    def __repr__(self) -> str:
        return f"GymnasiumVectorEnv({self.games.spec.name!r}, {self.num_envs} games, levels {self.games.levels})"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ndarray, dict[str, ndarray]]:
        """Every game at the start of an episode."""
        chosen = self._chosen_levels(options or {})
        if seed is not None:
            seed = check_integer("seed", seed, 0, LAST_SEED)
        super().reset(seed=seed)
        if (seed is not None and seed != self._seed) or not self._is_fresh:
            self._seed = int(self.np_random.integers(LAST_SEED)) if seed is None else seed
            self.games.close()
            self.games = self._make(seed=self._seed)
            self._is_fresh = True
        seen = self.games.observe()
        for env, level in enumerate(chosen):
            self.games.play(env, level)  # type: ignore[attr-defined]
            self._is_fresh = False
        return seen.obs.copy(), self._info(seen)

    def step_async(self, actions: ndarray) -> None:
        """Start a step of every game and return at once."""
        self.games.act(checked_actions(actions, self.num_envs, self.games.spec.num_actions))
        self._is_fresh = False

    def step(self, actions: ndarray) -> tuple[ndarray, ndarray, ndarray, ndarray, dict[str, ndarray]]:
        """One step of every game: observations, rewards, terminated, truncated, info."""
        self.step_async(actions)
        seen = self.games.observe()
        return (
            seen.obs.copy(),
            seen.reward.copy(),
            seen.first & ~seen.timed_out,
            seen.timed_out.copy(),
            self._info(seen),
        )

    def close_extras(self, **keywords: Any) -> None:
        self.games.close()

    def _info(self, seen: Observation) -> dict[str, ndarray]:
        info = {"level": seen.level.copy(), "solved": seen.solved.copy()}
        return info | ({"full": seen.full.copy()} if self._full_view else {})

    def _chosen_levels(self, options: dict[str, Any]) -> list[int]:
        for name in options:
            if name != "levels":
                raise InputError(f"reset has the option {name!r}; accepted: levels")
        levels = options.get("levels")
        if levels is None:
            return []
        if not isinstance(self.games, LevelControl):
            raise InputError(f"levels is {levels} but {self.games.spec.name} cannot play a chosen one; accepted: None")
        chosen = np.asarray(levels)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise InputError(f"levels is {levels}; accepted: {self.num_envs} whole numbers, one for each game")
        for level in (int(chosen.min()), int(chosen.max())):
            check_range("levels", level, 0, SEED_LIMIT - 1)
        return chosen.tolist()


def observation_space(spec: EnvSpec) -> gymnasium.spaces.Box:
    """What one game shows."""
    if spec.obs_dtype == "uint8":
        return gymnasium.spaces.Box(0, 255, spec.obs_shape, np.uint8)
    return gymnasium.spaces.Box(-np.inf, np.inf, spec.obs_shape, np.float32)


class GymnasiumSingleEnv(gymnasium.Env):
    """One game of `env`, for whatever wants single environments: `gymnasium.make("expgen/maze", levels=200)`.

    `how` are the other arguments of GymnasiumVectorEnv, but `reset` takes one level. Many games are stepped several
    times faster by `gymnasium.make_vec`. The last step of an episode shows the frame before it again.
    """

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
        seed = None if seed is None else check_integer("seed", seed, 0, LAST_SEED)
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
