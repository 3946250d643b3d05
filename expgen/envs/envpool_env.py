"""EnvPool tasks behind VecEnv: `envpool:MazeEasy-v0`, `envpool:CartPole-v1`.

EnvPool steps in its own threads between `send` and `recv`, which are our `act` and `observe`. It returns the last frame
of an episode and restarts one step later; we restart ended games inside `observe`, so that `first` comes with the
reward that ended the episode, as in all our environments.

Levels:
- ProcGen tasks take a contiguous range of levels (start and count) and report the current one. For `all` without some
  levels, a game that starts an excluded level is restarted. Level lists with gaps (`3,7,9`) are not supported.
- Other tasks have one generator per environment that is seeded once, so an episode has no seed of its own: they support
  only `all`, and `level` is -1.

No LevelControl and no Snapshots: EnvPool can neither start a chosen level nor save a game.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.envs.levels import LevelSet
from expgen.envs.spaces import action_range, obs_layout
from expgen.envs.vec_env import EnvSpec, Observation, env_repr, initial_observation
from expgen.errors import InputError

UNKNOWN_LEVEL = -1
MANAGED_FIELDS = (  # of EnvPool's config: set by this adapter, not by options
    "num_envs", "batch_size", "num_threads", "seed", "env_seed", "num_levels", "start_level", "channel_first"
)  # fmt: skip


class EnvpoolEnv:
    """`num_envs` games of one EnvPool task on `threads` threads; `options` are fields of the task's EnvPool config."""

    __repr__ = env_repr

    def __init__(self, task: str, levels: LevelSet, num_envs: int, seed: int, threads: int, options: Mapping[str, Any]):
        name = f"envpool:{task}"
        self._pool = _make(name, task, levels, num_envs, seed, threads, options)
        self._layout = obs_layout(name, self._pool.observation_space)
        actions = action_range(name, self._pool.action_space)
        self._first_action = actions.start
        self.spec = EnvSpec(name, self._layout.shape, self._layout.dtype, len(actions))
        self.levels, self.num_envs = levels, num_envs
        self._observation = initial_observation(np.zeros((num_envs, *self._layout.shape), dtype=self._layout.dtype))
        self._excluded = np.asarray(levels.excluded, dtype=np.int32)
        self._is_stepping = False
        self._restart(np.arange(num_envs))

    def act(self, action: ndarray) -> None:
        self._pool.send(action + self._first_action if self._first_action else action)
        self._is_stepping = True

    def observe(self) -> Observation:
        if self._is_stepping:
            self._is_stepping = False
            obs, reward, terminated, truncated, info = self._pool.recv()
            env = info["env_id"]  # the environment of each row
            has_ended = terminated | truncated
            solved = has_ended & _is_solved(terminated, reward, info)
            self._layout.fill(self._observation.obs, env, obs)
            self._observation.reward[env] = reward
            self._observation.first[env] = has_ended
            self._observation.solved[env] = solved
            self._observation.timed_out[env] = truncated & ~terminated & ~solved
            if has_ended.any():
                self._restart(env[has_ended])
        return self._observation

    def close(self) -> None:
        if self._pool is not None:
            self.observe()  # EnvPool must not be closed during a step
            self._pool.close()
            self._pool = None

    def _restart(self, env: ndarray) -> None:
        """Start a new episode in each of `env`; repeat where the level is excluded."""
        while env.size:
            obs, info = self._pool.reset(env)
            env = info["env_id"]
            self._layout.fill(self._observation.obs, env, obs)
            self._observation.level[env] = info.get("level_seed", UNKNOWN_LEVEL)
            env = env[np.isin(self._observation.level[env], self._excluded)]


def _is_solved(terminated: ndarray, reward: ndarray, info: Mapping[str, Any]) -> ndarray:
    """Return what ProcGen reports; for other tasks the same rule as the Gymnasium adapter."""
    for key in ("prev_level_complete", "success", "is_success"):
        if key in info:
            return np.asarray(info[key]).astype(bool)
    return terminated & (reward > 0)


def _make(
    name: str, task: str, levels: LevelSet, num_envs: int, seed: int, threads: int, options: Mapping[str, Any]
) -> Any:
    try:
        import envpool
    except ImportError:
        problem = f"--env is {name!r}, but EnvPool is missing"
        raise InputError(f"{problem}; accepted after pip install 'expgen[envpool]'") from None
    if task not in envpool.list_all_envs():
        raise InputError(f"--env is {name!r}; accepted: a task of envpool.list_all_envs(), such as envpool:MazeEasy-v0")
    try:
        fields = envpool.make_spec(task).config._fields
    except ImportError as error:  # on some Python versions ProcGen tasks need a system library
        problem = f"--env is {name!r}, which cannot be loaded: {' '.join(str(error).split()).rstrip('.')}"
        raise InputError(f"{problem}; accepted: procgen:GAME, or a machine with these libraries") from None
    accepted = [field for field in fields if field not in MANAGED_FIELDS]
    for option in options:
        if option not in accepted:
            raise InputError(f"option {option!r} is unknown to {name!r}; accepted: {', '.join(accepted)}")
    config = {**options, **_level_config(name, "num_levels" in fields, levels)}
    if "channel_first" in fields:
        config["channel_first"] = False  # pictures are height, width, channel
    # EnvPool would seed environment i with seed + i, so runs with neighbouring seeds would share games
    seeds = (np.random.SeedSequence(seed).generate_state(num_envs) >> 1).tolist()
    return envpool.make_gymnasium(task, num_envs=num_envs, num_threads=threads, seed=seeds, **config)


def _level_config(name: str, has_levels: bool, levels: LevelSet) -> dict[str, int]:
    given = f"levels is {str(levels)!r}" + (f" without {len(levels.excluded)} levels" if levels.excluded else "")
    if not has_levels:
        if levels.seeds is not None or levels.excluded:
            raise InputError(f"{given}; accepted by {name!r}: all (EnvPool seeds it only once)")
        return {}
    if levels.seeds is None:
        return {"start_level": 0, "num_levels": 0}
    start, last = min(levels.seeds), max(levels.seeds)
    if last - start + 1 != len(levels.seeds):
        raise InputError(f"{given}; accepted by {name!r}: COUNT, START:COUNT or all")
    return {"start_level": start, "num_levels": len(levels.seeds)}
