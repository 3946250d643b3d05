"""Maximum-entropy oracles (Appendix B.2): the largest novelty that an agent can find in a level.

An oracle maps level seeds to a number of steps that show a new frame, the novelty of `explore`. It ignores the time
limit.

| environment | oracle |
|---|---|
| minimaze | exact: cells reachable without touching the goal, minus the start cell |
| procgen:maze | novelty of the wall follower, simulated on the layout |
| procgen:jumper | background cells of the first frame, pooled 3 × 3 and uncentred |
| procgen:miner | cells of the 10 × 10 grid that contain dirt |

The last two are the paper's and approximate: some cells cannot be reached, and one cell shows many frames (a jump moves
the agent by fractions of a cell, boulders fall). In ProcGen's Maze the agent's sprite faces its last horizontal move,
so a cell can be new twice; the wall follower's novelty includes that, the original code's number of cells does not. In
flat colours the agent looks the same on both sides, and the number of reachable cells is exact.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy import ndarray

from expgen.envs.levels import LevelSet
from expgen.envs.make import build_env
from expgen.envs.maze_generator import MazeGenerator
from expgen.envs.minimaze import Minimaze, MinimazeConfig
from expgen.envs.procgen import ProcgenConfig, make_procgen
from expgen.envs.procgen_env import ControlledProcgenEnv
from expgen.envs.views import UncentredTwin
from expgen.errors import InputError, check_choice
from expgen.exploration.wall_follower import (
    Layout,
    WallFollower,
    minimaze_follower,
    procgen_maze_follower,
    reachable_cells,
    read_procgen_maze,
    tour_frames,
)
from expgen.reward.pooling import pooled

FLAT_COLORS = {"use_backgrounds": False, "use_monochrome_assets": True}  # one colour per kind of object, on black
WALL_FOLLOWER_ENVS = ("minimaze", "procgen:maze")
MAZE_TIME_LIMIT = 500  # the frame after the last step is never observed
MAZE_SYMMETRIC_CELLS = ((6, 8), (6, 12))  # layout cells where the sprite looks the same on both sides in 0.10.7
JUMPER_POOL = 3  # pixels per side of a cell, the size of the agent
MINER_DIRT = (191, 63, 191)  # in flat colours
MINER_SIDE = 10  # cells per side, easy mode
_BATCH_LEVELS = 256  # levels counted together

Oracle = Callable[[ndarray], ndarray]  # level seeds [E], with repetitions → novelty [E] int64


def background_cells(frame: ndarray) -> ndarray:
    """Count the 3 × 3 cells without red in frames on black `[N, 64, 64, 3]`; `[N]`."""
    cell = pooled(torch.from_numpy(frame).unsqueeze(0), JUMPER_POOL).cell[0]  # [N, cells, C]
    return (cell[..., 0] == 0).sum(1).numpy()


def dirt_cells(frame: ndarray) -> ndarray:
    """Count the cells with dirt in Miner's frames in flat colours `[N, 64, 64, 3]`; `[N]`."""
    middle = ((np.arange(MINER_SIDE) + 0.5) * frame.shape[1] / MINER_SIDE).astype(np.int64)  # [10]
    return (frame[:, middle][:, :, middle] == MINER_DIRT).all(-1).sum((1, 2))


def maze_tour(frame: ndarray) -> ndarray:
    """Return the wall follower's novelty in Maze, from first frames in flat colours `[N, 64, 64, 3]`; `[N]`."""
    return tour_frames(read_procgen_maze(frame), MAZE_TIME_LIMIT - 1, MAZE_SYMMETRIC_CELLS) - 1


# For each ProcGen game: a function from first frames [L, 64, 64, 3] to novelty [L], and the options of these frames.
_Count = tuple[Callable[[ndarray], ndarray], Mapping[str, bool]]
_PROCGEN: dict[str, _Count] = {
    "maze": (maze_tour, FLAT_COLORS),
    "jumper": (background_cells, {"use_backgrounds": False, "center_agent": False}),
    "miner": (dirt_cells, FLAT_COLORS),
}
_FLAT_MAZE: _Count = (lambda frame: reachable_cells(read_procgen_maze(frame)) - 1, FLAT_COLORS)


class CachedOracle:
    """An oracle that computes each level once."""

    def __init__(self, count: Callable[[ndarray], ndarray]) -> None:
        self.count = count  # distinct level seeds [L] → novelty [L]
        self.known: dict[int, int] = {}

    def __call__(self, level: ndarray) -> ndarray:
        unknown = np.array(sorted(set(level.tolist()) - self.known.keys()), dtype=np.int64)
        for start in range(0, len(unknown), _BATCH_LEVELS):
            batch = unknown[start : start + _BATCH_LEVELS]
            self.known.update(zip(batch.tolist(), self.count(batch).tolist()))
        return np.array([self.known[seed] for seed in level.tolist()], dtype=np.int64)


def make_oracle(env: str, **options: Any) -> Oracle | None:
    """Return the oracle of the environment that `build_env` makes with the same arguments, or None."""
    if env == "minimaze":
        config = MinimazeConfig(**options)
        generator = MazeGenerator(config.min_cells, config.max_cells, config.num_themes, config.texture)
        return CachedOracle(lambda level: reachable_cells(minimaze_layout(generator, level)) - 1)
    family, _, game = env.partition(":")
    if family != "procgen" or game not in _PROCGEN:
        return None
    procgen = ProcgenConfig(game, **options)
    changes_levels = procgen.use_generated_assets or procgen.hidden or procgen.use_sequential_levels
    if procgen.distribution_mode != "easy" or changes_levels:
        return None
    count, view = _FLAT_MAZE if game == "maze" and procgen.use_monochrome_assets else _PROCGEN[game]
    return CachedOracle(lambda level: count(first_frames(env, level, **view)))


def make_wall_follower(
    env: str, levels: Any, num_envs: int, seed: int = 0, threads: int = 1, human_view: bool = False, **options: Any
) -> tuple[WallFollower, Minimaze | UncentredTwin]:
    """Return the wall follower and an environment for it; `full` is the ordinary view, the input of r_I.

    For ProcGen's Maze, `obs` is a twin in flat colours that the wall follower can read; with `human_view` the library
    also draws the ordinary view large, for `picture`.
    """
    check_choice("env", env, WALL_FOLLOWER_ENVS)
    if env == "minimaze":
        game = build_env(env, levels, num_envs, seed, threads, **options)
        assert isinstance(game, Minimaze)
        return minimaze_follower(), game
    arguments = (LevelSet.parse(levels), num_envs, seed, (threads + 1) // 2, False)
    flat = make_procgen(ProcgenConfig("maze", **{**options, **FLAT_COLORS}), *arguments)
    ordinary = make_procgen(ProcgenConfig("maze", **options), *arguments, human_view)
    if not (isinstance(flat, ControlledProcgenEnv) and isinstance(ordinary, ControlledProcgenEnv)):
        raise InputError("the wall follower does not support hidden mazes and use_generated_assets")
    return procgen_maze_follower(), UncentredTwin(flat, ordinary)


def first_frames(env: str, level: ndarray, **options: bool) -> ndarray:
    """Return the first frames of levels `[L]`; `[L, …]`."""
    frames = []
    for seed in level.tolist():
        game = build_env(env, (seed,), num_envs=1, **options)
        frames.append(game.observe().obs[0].copy())
        game.close()
    return np.stack(frames)


def minimaze_layout(generator: MazeGenerator, level: ndarray) -> Layout:
    """Return the mazes of levels `[L]`; the goal is not free."""
    mazes = generator(level)
    is_free = ~mazes.walls
    is_free[np.arange(len(level)), mazes.goal] = False
    return Layout(is_free.reshape(len(level), generator.side, generator.side), mazes.start)
