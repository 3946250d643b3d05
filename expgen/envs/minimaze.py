"""minimaze: many small mazes stepped together, a small version of ProcGen's Maze.

The agent moves one pixel per step and sees the whole maze, so `full` is `obs`. Actions are those of ACTIONS; a move
into a wall does nothing. Reaching the goal pays 10 and ends the episode as solved; the time limit ends it without
reward. An ended episode restarts within the step: the observation is then the first of the next level.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from expgen.envs.levels import SEED_LIMIT, LevelSet, LevelStream
from expgen.envs.maze_generator import AGENT_COLOR, THEMES, MazeCache, MazeGenerator
from expgen.envs.vec_env import EnvSpec, Observation, env_repr, initial_observation
from expgen.errors import InputError, check_range

ACTIONS = ("none", "left", "right", "up", "down")
_ROW_STEP, _COLUMN_STEP = np.array([0, 0, 0, -1, 1]), np.array([0, -1, 1, 0, 0])
_BATCH_PIXELS = 2**15  # pixels per generated batch: larger batches do not reduce the cost per level


@dataclass(frozen=True)
class MinimazeConfig:
    """Settings of minimaze; the defaults give an 11 x 11 picture and train in minutes on two cores."""

    min_cells: int = 2  # cells per side of the smallest maze; ProcGen's Maze: 2
    max_cells: int = 5  # cells per side of the largest maze; the picture has 2 * max_cells + 1 pixels; ProcGen easy: 8
    time_limit: int = 0  # steps per episode; 0: twice a full tour of the largest maze (ProcGen easy: 500, tour 252)
    num_themes: int = 8  # number of colour themes, each a wall and a floor colour
    texture: int = 12  # largest random change of brightness per level and floor pixel; 0: plain floor
    goal_reward: float = 10.0  # paid at the goal; ProcGen's Maze: 10
    cache_levels: int = 4096  # levels in the cache; others are generated again when drawn

    def __post_init__(self) -> None:
        check_range("min_cells", self.min_cells, 2, self.max_cells)
        check_range("max_cells", self.max_cells, 2, 100)
        check_range("time_limit", self.time_limit, 0, 10**6)
        check_range("num_themes", self.num_themes, 1, len(THEMES))
        check_range("texture", self.texture, 0, 255)
        check_range("cache_levels", self.cache_levels, 1, 10**6)

    @property
    def horizon(self) -> int:
        """Steps per episode: `time_limit`, or twice the longest tour."""
        return self.time_limit or 2 * self.longest_tour

    @property
    def longest_tour(self) -> int:
        """Steps of a full tour of the largest maze: a tree of 2c²-1 pixels, every edge passed twice."""
        return 2 * (2 * self.max_cells**2 - 2)


class Minimaze:
    """N mazes: VecEnv, LevelControl and Snapshots; the step is taken in `act`."""

    __repr__ = env_repr

    def __init__(self, levels: LevelSet, num_envs: int, seed: int, config: MinimazeConfig):
        generator = MazeGenerator(config.min_cells, config.max_cells, config.num_themes, config.texture)
        side = generator.side
        self.config, self.levels, self.num_envs = config, levels, num_envs
        self._horizon = config.horizon
        self.spec = EnvSpec("minimaze", (side, side, 3), "uint8", len(ACTIONS))
        self._stream = LevelStream(levels, num_envs, seed)
        self._num_upcoming = max(1, _BATCH_PIXELS // (side * side * num_envs))
        self._cache = MazeCache(generator, max(config.cache_levels, (1 + self._num_upcoming) * num_envs))
        self._offset = _ROW_STEP * side + _COLUMN_STEP  # [A]
        self._origin = np.arange(num_envs) * side * side  # [N] first index of each maze in the flat arrays

        self._walls = np.ones((num_envs, side, side), dtype=bool)
        self._agent = np.zeros(num_envs, dtype=np.int64)  # [N] index into the flat arrays
        self._goal = np.zeros(num_envs, dtype=np.int64)  # [N] index into the flat arrays
        self._elapsed = np.zeros(num_envs, dtype=np.int64)  # [N] steps of the current episode
        self._floor = np.zeros((num_envs, 3), dtype=np.uint8)  # colour of the floor under the agent
        pixels = np.zeros((num_envs, side, side, 3), dtype=np.uint8)
        self._flat_walls, self._flat_pixels = self._walls.reshape(-1), pixels.reshape(-1, 3)
        self._observation = initial_observation(pixels)
        all_envs = np.arange(num_envs)
        self._start(all_envs, self._stream.next(all_envs))

    @property
    def walls(self) -> ndarray:
        """[N, H, W] bool, walls of the current mazes; a read-only view, overwritten when an episode ends."""
        view = self._walls.view()
        view.flags.writeable = False
        return view

    @property
    def agent(self) -> ndarray:
        """[N, 2] row and column of each agent."""
        return self._row_column(self._agent)

    @property
    def goal(self) -> ndarray:
        """[N, 2] row and column of each goal."""
        return self._row_column(self._goal)

    def act(self, action: ndarray) -> None:
        """Take a step; `action` is [N] integers, indices into ACTIONS."""
        if action.shape != (self.num_envs,) or action.min() < 0 or action.max() >= len(ACTIONS):
            raise ValueError(f"action is {action!r}; accepted: [{self.num_envs}] integers in 0..{len(ACTIONS) - 1}")
        pixels, observation = self._flat_pixels, self._observation
        pixels[self._agent] = self._floor
        target = self._agent + self._offset[action]
        self._agent = np.where(self._flat_walls[target], self._agent, target)
        self._floor = pixels[self._agent]
        pixels[self._agent] = AGENT_COLOR

        self._elapsed += 1
        solved = self._agent == self._goal
        ended = solved | (self._elapsed >= self._horizon)
        observation.solved[:] = solved
        observation.reward[:] = solved * self.config.goal_reward
        observation.first[:] = ended
        observation.timed_out[:] = ended & ~solved
        if ended.any():
            env = np.flatnonzero(ended)
            self._start(env, self._stream.next(env))

    def observe(self) -> Observation:
        return self._observation

    def play(self, env: int, level: int) -> None:
        if not (0 <= env < self.num_envs and 0 <= level < SEED_LIMIT):
            raise ValueError(f"play({env}, {level}); accepted: env 0..{self.num_envs - 1}, level 0..{SEED_LIMIT - 1}")
        self._start(np.array([env]), np.array([level]))

    def save(self) -> dict[str, ndarray]:
        return {name: array.copy() for name, array in self._state().items()}

    def restore(self, state: Mapping[str, ndarray]) -> None:
        if state["level"].shape != (self.num_envs,):
            raise InputError(f"shape of the saved levels is {state['level'].shape}; accepted: ({self.num_envs},)")
        self._start(np.arange(self.num_envs), state["level"].astype(np.int64))
        self._flat_pixels[self._agent] = self._floor
        for name, array in self._state().items():
            array[:] = state.get(name, False) if name == "timed_out" else state[name]  # missing in older states
        self._floor[:] = self._flat_pixels[self._agent]
        self._flat_pixels[self._agent] = AGENT_COLOR

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _state(self) -> dict[str, ndarray]:
        observation = self._observation
        return {
            "level": observation.level,
            "agent": self._agent,
            "elapsed": self._elapsed,
            "drawn": self._stream.drawn,
            "reward": observation.reward,
            "first": observation.first,
            "solved": observation.solved,
            "timed_out": observation.timed_out,
        }

    def _start(self, env: ndarray, level: ndarray) -> None:
        """Start `level[i]` in environment `env[i]`."""
        slot = self._cache.slot(level, lambda: self._stream.peek(self._num_upcoming))
        mazes = self._cache.mazes
        self._walls.reshape(self.num_envs, -1)[env] = mazes.walls[slot]
        self._flat_pixels.reshape(self.num_envs, -1, 3)[env] = mazes.frame[slot]
        agent = self._origin[env] + mazes.start[slot]
        self._agent[env] = agent
        self._goal[env] = self._origin[env] + mazes.goal[slot]
        self._floor[env] = self._flat_pixels[agent]
        self._flat_pixels[agent] = AGENT_COLOR
        self._elapsed[env] = 0
        self._observation.level[env] = level
        self._observation.first[env] = True

    def _row_column(self, flat: ndarray) -> ndarray:
        return np.stack(np.divmod(flat - self._origin, self.spec.obs_shape[0]), axis=1)
