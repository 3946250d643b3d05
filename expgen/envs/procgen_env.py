"""ProcGen behind VecEnv, with any level set, choice of levels and exact snapshots."""

import json
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy import ndarray

from expgen.envs.levels import SEED_LIMIT, LevelSet
from expgen.envs.libenv import LibEnv, PlayerPosition, level_of, move_to_level, player_position
from expgen.envs.vec_env import EnvSpec, Observation, env_repr
from expgen.errors import InputError

Options = Mapping[str, str | int | bool]
TIME_LIMITS = {"maze": 500, "leaper": 500, "bossfight": 4000, "plunder": 4000, "bigfish": 6000}  # others: 1000
MEMORY_MODE = 10  # the library's number of this mode


class ProcgenEnv:
    """N games of one kind, with generated assets; without them use ControlledProcgenEnv.

    With generated assets the library can neither save a game nor start a chosen level, so level sets with gaps raise
    InputError.
    """

    __repr__ = env_repr
    num_actions = 15

    def __init__(self, options: Options, levels: LevelSet, num_envs: int, seed: int, threads: int) -> None:
        self.spec = EnvSpec(f"procgen:{options['env_name']}", (64, 64, 3), "uint8", self.num_actions)
        self.levels, self.num_envs, self._options = levels, num_envs, dict(options)
        level_range, self._has_gaps = library_range(levels, can_replace=not options["use_generated_assets"])
        self._games = LibEnv(num_envs, {**options, **level_range, "rand_seed": int(seed), "num_threads": threads})
        self._action = self._games.action["action"]  # [N]
        self._complete = self._games.info["prev_level_complete"].view(bool)  # [N]
        obs, reward, first = self._games.obs["rgb"], self._games.reward, self._games.first.view(bool)
        solved, timed_out = np.zeros(num_envs, bool), np.zeros(num_envs, bool)  # [N]
        self._observation = Observation(obs, obs, reward, first, self._games.info["level_seed"], solved, timed_out)
        self._elapsed = np.full(num_envs, -1)  # [N] steps of the current episode; the first reset makes it 0
        self._time_limit = time_limit(str(options["env_name"]), int(options["distribution_mode"]))
        self._is_stepping = True  # the first reset

    def act(self, action: ndarray) -> None:
        if action.shape != self._action.shape:
            raise ValueError(f"action has shape {action.shape}; accepted: {self._action.shape}")
        if self._is_stepping:
            self.observe()  # the library may still read the previous actions
        np.copyto(self._action, action, casting="same_kind")
        self._games.act()
        self._is_stepping = True

    def observe(self) -> Observation:
        """Wait for the current step; the arrays are the library's buffers."""
        observation = self._observation
        if self._is_stepping:
            self._games.observe()
            self._is_stepping = False
            self._elapsed += 1
            is_late = self._elapsed >= self._time_limit  # the library does not report time-outs
            observation.solved[:] = self._complete & observation.first
            observation.timed_out[:] = is_late & observation.first & ~observation.solved
            self._elapsed[observation.first] = 0
        return observation

    def picture(self, env: int) -> ndarray:
        """Return one game drawn large, `[512, 512, 3]` uint8; needs the option render_human."""
        self.observe()
        return self._games.info["rgb"][env]

    def close(self) -> None:
        self._games.close()


class ControlledProcgenEnv(ProcgenEnv):
    """ProcGen with LevelControl and Snapshots.

    The library draws each next level from a range, with replacement; it has no other level sets. For a set with gaps it
    draws from the enclosing range, and an episode on a level outside the set is moved to a level drawn from the set.
    This keeps all levels equally likely.
    """

    def __init__(self, options: Options, levels: LevelSet, num_envs: int, seed: int, threads: int) -> None:
        super().__init__(options, levels, num_envs, seed, threads)
        self._rng = np.random.default_rng(seed)  # draws the replacements of levels outside the set

    def observe(self) -> Observation:
        """Wait for the current step, then move games that start on a level outside the set."""
        has_stepped = self._is_stepping
        observation = super().observe()
        if has_stepped and self._has_gaps:
            for env in np.flatnonzero(observation.first).tolist():
                if int(observation.level[env]) not in self.levels:
                    self.play(env, int(self.levels.draw(1, self._rng)[0]))
        return observation

    def play(self, env: int, level: int) -> None:
        """Restart one game at the start of `level`, see LevelControl; the levels it draws later do not change."""
        if not 0 <= level < SEED_LIMIT:
            raise InputError(f"level is {level}; accepted: 0..{SEED_LIMIT - 1}")
        observation = self.observe()
        own = self._games.get_state(env)
        start = start_of_level(tuple(self._options.items()), int(level))
        reward, solved = float(observation.reward[env]), bool(observation.solved[env])
        self._games.set_state(env, move_to_level(own, start, reward, solved))
        self._elapsed[env] = 0

    def player_position(self, env: int) -> PlayerPosition:
        self.observe()
        return player_position(self._games.get_state(env))

    def save(self) -> dict[str, ndarray]:
        """Return the complete state: the games as bytes, and what the library does not save."""
        self.observe()
        games = [np.frombuffer(self._games.get_state(env), np.uint8) for env in range(self.num_envs)]
        rng = json.dumps(self._rng.bit_generator.state).encode()
        return {
            "games": np.concatenate(games),
            "length": np.array([len(game) for game in games]),  # [N] bytes of each game
            "elapsed": self._elapsed.copy(),
            "timed_out": self._observation.timed_out.copy(),
            "rng": np.frombuffer(rng, np.uint8),
        }

    def restore(self, state: Mapping[str, ndarray]) -> None:
        """Continue where `save` was called; `observe` returns the same observation as then."""
        games, length = state["games"], state["length"]
        if length.shape != (self.num_envs,) or length.sum() != len(games):
            raise InputError(f"saved state holds {len(length)} games; accepted: {self.num_envs}")
        self.observe()
        for env, game in enumerate(np.split(games, np.cumsum(length)[:-1])):
            self._games.set_state(env, game.tobytes())
        self._observation.solved[:] = self._complete & self._observation.first
        self._elapsed[:] = state.get("elapsed", 0)  # missing in older states, like timed_out
        self._observation.timed_out[:] = state.get("timed_out", False)
        self._rng.bit_generator.state = json.loads(state["rng"].tobytes())


def library_range(levels: LevelSet, can_replace: bool) -> tuple[dict[str, int], bool]:
    """Return the level range as options of the library, and whether it contains levels outside `levels`.

    Raise InputError if it does and such levels cannot be replaced.
    """
    seeds, excluded = levels.seeds, levels.excluded
    if seeds is None and isinstance(excluded, range) and excluded.start == 0 and excluded and not can_replace:
        return {"start_level": excluded.stop, "num_levels": SEED_LIMIT - excluded.stop}, False
    if seeds is None:
        options, has_gaps = {"start_level": 0, "num_levels": 0}, bool(excluded)
    else:
        low, high = int(min(seeds)), int(max(seeds)) + 1
        options, has_gaps = {"start_level": low, "num_levels": high - low}, high - low > len(seeds)
    if has_gaps and not can_replace:
        raise InputError("levels has gaps, but use_generated_assets is True; accepted: COUNT, START:COUNT or all")
    return options, has_gaps


def time_limit(game: str, mode: int) -> int:
    """Return the library's time limit in steps; `mode` is its number of the distribution mode."""
    return 2000 if (game, mode) == ("jumper", MEMORY_MODE) else TIME_LIMITS.get(game, 1000)


@lru_cache(maxsize=256)  # at most 10 MB; holds the 200 levels of level replay
def start_of_level(options: tuple[tuple[str, str | int | bool], ...], level: int) -> bytes:
    """Return a saved game at the start of `level`."""
    game = LibEnv(1, {**dict(options), "start_level": level, "num_levels": 1, "rand_seed": 0, "num_threads": 0})
    game.observe()
    state = game.get_state(0)
    game.close()
    if level_of(state) != level:
        raise InputError("this ProcGen library has another format of saved games; accepted: version 0.10.7")
    return state
