"""minimaze: many small mazes stepped together, a fair small copy of ProcGen's Maze.

The agent moves one pixel per step and sees the whole maze, so `full` is `obs`. Actions are those of ACTIONS; a move
into a wall does nothing. Reaching the goal pays 10 and ends the episode as solved; the time limit ends it unpaid. An
ended episode restarts within the step: the observation is then the first of the next level.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from expgen.envs.levels import SEED_LIMIT, LevelSet, LevelStream
from expgen.envs.maze_generator import AGENT_COLOR, THEMES, MazeCache, MazeGenerator
from expgen.envs.vec_env import EnvSpec, Observation, env_repr, fresh_observation
from expgen.errors import InputError, check_range

ACTIONS = ("none", "left", "right", "up", "down")
_ROW_STEP = np.array([0, 0, 0, -1, 1])
_COLUMN_STEP = np.array([0, -1, 1, 0, 0])
_BATCH_PIXELS = 2**15  # pixels worth generating in one go: beyond, the cost per level is flat


@dataclass(frozen=True)
class MinimazeConfig:
    """The maze's own settings; the defaults make an 11 x 11 picture and train in minutes on two cores."""

    min_cells: int = 2  # cells per side of the smallest maze; ProcGen's Maze: 2
    max_cells: int = 5  # cells per side of the largest maze, the picture has 2 * max_cells + 1 pixels; ProcGen easy: 8
    time_limit: int = 0  # steps per episode; 0: twice a full tour of the largest maze (ProcGen easy: 500, tour 252)
    num_themes: int = 8  # colour themes in play, each a wall and a floor colour
    texture: int = 12  # largest change of a floor pixel's brightness, drawn per level and pixel; 0 for a plain floor
    goal_reward: float = 10.0  # paid at the goal; ProcGen's Maze: 10
    cache_levels: int = 4096  # levels kept ready; the rest are generated again when drawn

    def __post_init__(self) -> None:
        bounds = {
            "min_cells": (2, self.max_cells),
            "max_cells": (2, 100),
            "time_limit": (0, 10**6),
            "num_themes": (1, len(THEMES)),
            "texture": (0, 255),
            "cache_levels": (1, 10**6),
        }
        for field, (least, most) in bounds.items():
            check_range(field, getattr(self, field), least, most)

    @property
    def horizon(self) -> int:
        """Steps per episode: `time_limit`, or twice the wall follower's way through the largest maze and back."""
        return self.time_limit or 2 * self.longest_tour

    @property
    def longest_tour(self) -> int:
        """Steps of a full tour of the largest maze: a tree of 2c²-1 pixels, each of its edges walked twice."""
        return 2 * (2 * self.max_cells**2 - 2)


class Minimaze:
    """N mazes behind VecEnv, LevelControl and Snapshots; the step is taken in `act`."""

    __repr__ = env_repr

    def __init__(self, levels: LevelSet, num_envs: int, seed: int, config: MinimazeConfig):
        generator = MazeGenerator(config.min_cells, config.max_cells, config.num_themes, config.texture)
        side = generator.side
        self.config = config
        self.num_envs = num_envs
        self.levels = levels
        self._horizon = config.horizon
        self.spec = EnvSpec("minimaze", (side, side, 3), "uint8", len(ACTIONS))
        self._stream = LevelStream(levels, num_envs, seed)
        self._num_ahead = max(1, _BATCH_PIXELS // (side * side * num_envs))
        self._cache = MazeCache(generator, max(config.cache_levels, (1 + self._num_ahead) * num_envs))
        self._offset = _ROW_STEP * side + _COLUMN_STEP  # [A]
        self._origin = np.arange(num_envs) * side * side  # [N] where each maze begins in the flat arrays below

        self._walls = np.ones((num_envs, side, side), dtype=bool)
        self._agent = np.zeros(num_envs, dtype=np.int64)  # [N] into flat walls and pixels
        self._goal = np.zeros(num_envs, dtype=np.int64)  # [N] likewise
        self._elapsed = np.zeros(num_envs, dtype=np.int64)  # [N] steps taken in this episode
        self._ground = np.zeros((num_envs, 3), dtype=np.uint8)  # the floor under the agent
        self._target = np.zeros(num_envs, dtype=np.int64)
        self._blocked = np.zeros(num_envs, dtype=bool)
        pixels = np.zeros((num_envs, side, side, 3), dtype=np.uint8)
        self._flat_walls, self._flat_pixels = self._walls.reshape(-1), pixels.reshape(-1, 3)
        self._seen = fresh_observation(pixels)
        everyone = np.arange(num_envs)
        self._start(everyone, self._stream.next(everyone))

    @property
    def walls(self) -> ndarray:
        """[N, H, W] bool, the mazes now being played; a read-only view, overwritten when an episode ends."""
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
        """Take the step: `action` is [N] integers, indices into ACTIONS."""
        if action.shape != (self.num_envs,) or action.min() < 0 or action.max() >= len(ACTIONS):
            raise ValueError(f"action is {action!r}; accepted: [{self.num_envs}] integers in 0..{len(ACTIONS) - 1}")
        seen, pixels = self._seen, self._flat_pixels
        pixels[self._agent] = self._ground
        self._offset.take(action, out=self._target, mode="clip")
        self._target += self._agent
        self._flat_walls.take(self._target, out=self._blocked, mode="clip")
        np.copyto(self._target, self._agent, where=self._blocked)
        self._agent, self._target = self._target, self._agent
        pixels.take(self._agent, axis=0, out=self._ground, mode="clip")
        pixels[self._agent] = AGENT_COLOR

        self._elapsed += 1
        np.equal(self._agent, self._goal, out=seen.solved)
        np.multiply(seen.solved, self.config.goal_reward, out=seen.reward, casting="same_kind")
        np.greater_equal(self._elapsed, self._horizon, out=seen.first)
        np.logical_or(seen.first, seen.solved, out=seen.first)
        np.greater(seen.first, seen.solved, out=seen.timed_out)  # the only other end
        if seen.first.any():
            ended = seen.first.nonzero()[0]
            self._start(ended, self._stream.next(ended))

    def observe(self) -> Observation:
        """What the last step, or the initial reset, brought."""
        return self._seen

    def play(self, env: int, level: int) -> None:
        """Put one game at the start of one level; see LevelControl."""
        if not (0 <= env < self.num_envs and 0 <= level < SEED_LIMIT):
            raise ValueError(f"play({env}, {level}); accepted: env 0..{self.num_envs - 1}, level 0..{SEED_LIMIT - 1}")
        self._start(np.array([env]), np.array([level]))

    def save(self) -> dict[str, ndarray]:
        """Everything the future depends on; see Snapshots."""
        return {name: array.copy() for name, array in self._state().items()}

    def restore(self, state: Mapping[str, ndarray]) -> None:
        """Continue where `save` was called; see Snapshots."""
        if state["level"].shape != (self.num_envs,):
            raise InputError(f"state holds {state['level'].shape} environments; accepted: ({self.num_envs},)")
        self._start(np.arange(self.num_envs), state["level"].astype(np.int64))
        self._flat_pixels[self._agent] = self._ground
        for name, array in self._state().items():
            array[:] = state.get(name, False) if name == "timed_out" else state[name]  # older states lack it
        self._ground[:] = self._flat_pixels[self._agent]
        self._flat_pixels[self._agent] = AGENT_COLOR

    def close(self) -> None:
        """Nothing is held that needs releasing."""

    def _state(self) -> dict[str, ndarray]:
        seen = self._seen
        return {
            "level": seen.level,
            "agent": self._agent,
            "elapsed": self._elapsed,
            "drawn": self._stream.drawn,
            "reward": seen.reward,
            "first": seen.first,
            "solved": seen.solved,
            "timed_out": seen.timed_out,
        }

    def _start(self, env: ndarray, level: ndarray) -> None:
        """Open `level[i]` in environment `env[i]`."""
        slot = self._cache.slot(level, lambda: self._stream.ahead(self._num_ahead))
        mazes = self._cache.mazes
        self._walls.reshape(self.num_envs, -1)[env] = mazes.walls[slot]
        self._flat_pixels.reshape(self.num_envs, -1, 3)[env] = mazes.frame[slot]
        agent = self._origin[env] + mazes.start[slot]
        self._agent[env] = agent
        self._goal[env] = self._origin[env] + mazes.goal[slot]
        self._ground[env] = self._flat_pixels[agent]
        self._flat_pixels[agent] = AGENT_COLOR
        self._elapsed[env] = 0
        self._seen.level[env] = level
        self._seen.first[env] = True

    def _row_column(self, flat: ndarray) -> ndarray:
        return np.stack(np.divmod(flat - self._origin, self.spec.obs_shape[0]), axis=1)
