"""ProcGen behind the VecEnv protocol: any set of levels, any chosen level, exact saving."""

import json
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy import ndarray

from expgen.envs.levels import SEED_LIMIT, LevelSet
from expgen.envs.libenv import LibEnv, Whereabouts, enter, level_of, whereabouts_of
from expgen.envs.vec_env import EnvSpec, Observation, env_repr
from expgen.errors import InputError

Options = Mapping[str, str | int | bool]
TIME_LIMITS = {"maze": 500, "leaper": 500, "bossfight": 4000, "plunder": 4000, "bigfish": 6000}  # of the others: 1000
MEMORY_MODE = 10  # the library's number


class ProcgenEnv:
    """N games of one kind; a VecEnv and no more, which is all that generated assets allow.

    With them the library can neither save nor move a game; level sets that need it raise InputError.
    """

    __repr__ = env_repr

    num_actions = 15

    def __init__(self, options: Options, levels: LevelSet, num_envs: int, seed: int, threads: int) -> None:
        self.spec = EnvSpec(f"procgen:{options['env_name']}", (64, 64, 3), "uint8", self.num_actions)
        self.levels = levels
        self.num_envs = num_envs
        self._options = dict(options)
        drawn, self._replaces = library_range(levels, can_replace=not options["use_generated_assets"])
        self._games = LibEnv(num_envs, {**options, **drawn, "rand_seed": int(seed), "num_threads": threads})
        self._action = self._games.action["action"]  # [N]
        self._complete = self._games.info["prev_level_complete"].view(bool)  # [N]
        obs, reward, first = self._games.obs["rgb"], self._games.reward, self._games.first.view(bool)
        solved, timed_out = np.zeros(num_envs, bool), np.zeros(num_envs, bool)  # [N]
        self._seen = Observation(obs, obs, reward, first, self._games.info["level_seed"], solved, timed_out)
        self._elapsed = np.full(num_envs, -1)  # [N] steps of the episode under way; the first reset is not one
        self._time_limit = time_limit(str(options["env_name"]), int(options["distribution_mode"]))
        self._stepping = True  # the first reset is under way

    def act(self, action: ndarray) -> None:
        """Start the step: `action` is [N], of any integer type."""
        if action.shape != self._action.shape:
            raise ValueError(f"action has shape {action.shape}; accepted: {self._action.shape}")
        if self._stepping:
            self.observe()  # the library may still be reading the last actions
        np.copyto(self._action, action, casting="same_kind")
        self._games.act()
        self._stepping = True

    def observe(self) -> Observation:
        """Wait for the step under way; the arrays are the library's own buffers."""
        if self._stepping:
            self._games.observe()
            self._stepping = False
            self._elapsed += 1
            self._tell_ends()
            self._elapsed[self._seen.first] = 0
        return self._seen

    def _tell_ends(self) -> None:
        """How episodes ended: the library tells successes, and the number of steps tells time-outs from deaths."""
        seen = self._seen
        np.logical_and(self._complete, seen.first, out=seen.solved)
        np.greater_equal(self._elapsed, self._time_limit, out=seen.timed_out)
        np.logical_and(seen.timed_out, seen.first & ~seen.solved, out=seen.timed_out)

    def picture(self, env: int) -> ndarray:
        """One game as a person would want to see it, `[512, 512, 3]` uint8; only with the option render_human."""
        self.observe()
        return self._games.info["rgb"][env]

    def close(self) -> None:
        """Stop the threads and free the games."""
        self._games.close()


class ControlledProcgenEnv(ProcgenEnv):
    """ProcGen with LevelControl and Snapshots.

    The library draws each next level from a range, with replacement, and knows no other sets. Other sets are widened to
    a range; an episode that begins on a level outside the set is moved to one drawn from the set, which leaves every
    level equally likely.
    """

    def __init__(self, options: Options, levels: LevelSet, num_envs: int, seed: int, threads: int) -> None:
        super().__init__(options, levels, num_envs, seed, threads)
        self._rng = np.random.default_rng(seed)  # of the levels that replace those outside the set
        self._members = np.asarray(levels.excluded if levels.seeds is None else levels.seeds)

    def observe(self) -> Observation:
        """Wait for the step under way, then move games that begin outside the set."""
        has_stepped = self._stepping
        seen = super().observe()
        if has_stepped and self._replaces and seen.first.any():
            self._replace_levels()
        return seen

    def _replace_levels(self) -> None:
        is_whole = self.levels.seeds is None
        outside = self._seen.first & np.isin(self._seen.level, self._members, invert=not is_whole)  # [N]
        for env in np.flatnonzero(outside).tolist():
            self.play(env, int(self.levels.draw(1, self._rng)[0]))

    def play(self, env: int, level: int) -> None:
        """Put one game at the start of one level, as LevelControl says; the env's later draws stay what they were."""
        if not 0 <= level < SEED_LIMIT:
            raise InputError(f"level is {level}; accepted: 0..{SEED_LIMIT - 1}")
        seen = self.observe()
        own = self._games.get_state(env)
        start = start_of_level(tuple(self._options.items()), int(level))
        self._games.set_state(env, enter(own, start, float(seen.reward[env]), bool(seen.solved[env])))
        self._elapsed[env] = 0

    def whereabouts(self, env: int) -> Whereabouts:
        """Where the player of one game is."""
        self.observe()
        return whereabouts_of(self._games.get_state(env))

    def save(self) -> dict[str, ndarray]:
        """The games as one array of bytes with their lengths, how long and how they have been played, and the generator
        of replacement levels."""
        self.observe()
        games = [np.frombuffer(self._games.get_state(env), np.uint8) for env in range(self.num_envs)]
        rng = json.dumps(self._rng.bit_generator.state).encode()
        length = np.array([len(game) for game in games])  # [N]
        return {
            "games": np.concatenate(games),
            "length": length,
            "elapsed": self._elapsed.copy(),
            "timed_out": self._seen.timed_out.copy(),
            "rng": np.frombuffer(rng, np.uint8),
        }

    def restore(self, state: Mapping[str, ndarray]) -> None:
        """Continue where `save` was called; the frames and rewards shown then are shown again."""
        games, length = state["games"], state["length"]
        if length.shape != (self.num_envs,) or length.sum() != len(games):
            raise InputError(f"saved state holds {len(length)} games; accepted: {self.num_envs}")
        self.observe()
        for env, game in enumerate(np.split(games, np.cumsum(length)[:-1])):
            self._games.set_state(env, game.tobytes())
        np.logical_and(self._complete, self._seen.first, out=self._seen.solved)
        self._elapsed[:] = state.get("elapsed", 0)  # states saved before time-outs were told have neither
        self._seen.timed_out[:] = state.get("timed_out", False)
        self._rng.bit_generator.state = json.loads(state["rng"].tobytes())


def library_range(levels: LevelSet, can_replace: bool) -> tuple[dict[str, int], bool]:
    """The range the library shall draw from, as its options, and whether some of it is outside `levels`."""
    seeds, excluded = levels.seeds, levels.excluded
    if seeds is None and isinstance(excluded, range) and excluded.start == 0 and excluded and not can_replace:
        return {"start_level": excluded.stop, "num_levels": SEED_LIMIT - excluded.stop}, False
    if seeds is None:
        options, replaces = {"start_level": 0, "num_levels": 0}, bool(excluded)
    else:
        low, high = int(min(seeds)), int(max(seeds)) + 1
        options, replaces = {"start_level": low, "num_levels": high - low}, high - low > len(seeds)
    if replaces and not can_replace:
        raise InputError("levels has gaps, but use_generated_assets is True; accepted: COUNT, START:COUNT or all")
    return options, replaces


def time_limit(game: str, mode: int) -> int:
    """Steps after which the library ends an episode of `game` in its distribution mode number `mode`."""
    if (game, mode) == ("jumper", MEMORY_MODE):
        return 2000
    return TIME_LIMITS.get(game, 1000)


@lru_cache(maxsize=256)  # 10 MB at most, and level replay's 200 levels fit
def start_of_level(options: tuple[tuple[str, str | int | bool], ...], level: int) -> bytes:
    """A saved game that is about to begin `level`."""
    alone = {"start_level": level, "num_levels": 1, "rand_seed": 0, "num_threads": 0}
    game = LibEnv(1, {**dict(options), **alone})
    game.observe()
    state = game.get_state(0)
    game.close()
    if level_of(state) != level:
        raise InputError("this ProcGen library lays out saved games differently; accepted: version 0.10.7")
    return state
