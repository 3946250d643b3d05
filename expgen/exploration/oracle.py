"""The most novelty there is to find in a level: maximum-entropy oracles (Appendix B.2), where they exist.

An oracle takes level seeds and answers in steps that show a new frame, the measure of `exploration`. It knows the
level, not the clock.

| environment | counted |
|---|---|
| minimaze | exactly: the cells that can be reached without touching the goal, less the one the agent starts on |
| procgen:maze | what the wall follower finds, played on the layout |
| procgen:jumper | background cells of the first frame, pooled 3 × 3 and uncentred |
| procgen:miner | cells of the 10 × 10 that hold dirt |

The last two are the paper's and rough: some cells cannot be reached, and one cell shows many frames (a jump moves the
agent by fractions of a cell, boulders fall). In ProcGen's Maze the agent's sprite looks the way it last went left or
right, so that a cell can be new twice; the wall follower's own count allows for that, where the number of cells, as in
the original code, does not. In flat colours the agent looks the same from both sides, and the count is exact.
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
from expgen.errors import InputError
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

FLAT = {"use_backgrounds": False, "use_monochrome_assets": True}  # one colour per kind of object, on black
MAZE_LIMIT = 500  # steps of an episode of Maze; the last one's frame is never seen
MAZE_ALIKE = ((6, 8), (6, 12))  # where its sprite looks the same both ways, in a layout; found by playing 0.10.7
_TOGETHER = 256  # levels looked at in one go
POOL = 3  # pixels per side of Jumper's cells, its agent's size
DIRT = (191, 63, 191)  # in Miner's flat colours
MINER_SIDE = 10  # cells per side, easy mode


def background_cells(frame: ndarray) -> ndarray:
    """Cells without any red, pooled 3 × 3, of frames on black `[N, 64, 64, 3]`: `[N]`."""
    cell = pooled(torch.from_numpy(frame).unsqueeze(0), POOL).cell[0]  # [N, cells, C]
    return (cell[..., 0] == 0).sum(1).numpy()


def dirt_cells(frame: ndarray) -> ndarray:
    """Cells of Miner's grid that hold dirt, of frames in flat colours `[N, 64, 64, 3]`: `[N]`."""
    middle = ((np.arange(MINER_SIDE) + 0.5) * frame.shape[1] / MINER_SIDE).astype(np.int64)  # [10]
    return (frame[:, middle][:, :, middle] == DIRT).all(-1).sum((1, 2))


# How a ProcGen game is counted: from first frames [L, 64, 64, 3] to [L], and the options they are shown with.
_Count = tuple[Callable[[ndarray], ndarray], Mapping[str, bool]]
_PROCGEN: dict[str, _Count] = {
    "maze": (lambda frame: tour_frames(read_procgen_maze(frame), MAZE_LIMIT - 1, MAZE_ALIKE) - 1, FLAT),
    "jumper": (background_cells, {"use_backgrounds": False, "center_agent": False}),
    "miner": (dirt_cells, FLAT),
}
_FLAT_MAZE: _Count = (lambda frame: reachable_cells(read_procgen_maze(frame)) - 1, FLAT)
Oracle = Callable[[ndarray], ndarray]  # level seeds [E], repeated or not → what there is to find, [E] int64


class LevelCounts:
    """An oracle that counts a level when it is first asked about and then remembers."""

    def __init__(self, count: Callable[[ndarray], ndarray]) -> None:
        self.count = count  # distinct level seeds `[L]` → counts `[L]`
        self.known: dict[int, int] = {}

    def __call__(self, level: ndarray) -> ndarray:
        unknown = np.array(sorted(set(level.tolist()) - self.known.keys()), dtype=np.int64)
        for part in np.split(unknown, range(_TOGETHER, len(unknown), _TOGETHER)):
            if len(part):
                self.known.update(zip(part.tolist(), self.count(part).tolist()))
        return np.array([self.known[seed] for seed in level.tolist()], dtype=np.int64)


FOLLOWED = ("minimaze", "procgen:maze")  # environments whose walls can be followed


def make_oracle(env: str, **options: Any) -> Oracle | None:
    """The oracle of the environment that `build_env` makes of the same name and options; None where there is none."""
    if env == "minimaze":
        config = MinimazeConfig(**options)
        generator = MazeGenerator(config.min_cells, config.max_cells, config.num_themes, config.texture)
        return LevelCounts(lambda level: reachable_cells(minimaze_layout(generator, level)) - 1)
    family, _, game = env.partition(":")
    if family != "procgen" or game not in _PROCGEN:
        return None
    procgen = ProcgenConfig(game, **options)
    changes_levels = procgen.use_generated_assets or procgen.hidden or procgen.use_sequential_levels
    if procgen.distribution_mode != "easy" or changes_levels:
        return None
    count, view = _FLAT_MAZE if game == "maze" and procgen.use_monochrome_assets else _PROCGEN[game]
    return LevelCounts(lambda level: count(first_frames(env, level, **view)))


def make_wall_follower(
    env: str, levels: Any, num_envs: int, seed: int = 0, threads: int = 1, human_view: bool = False, **options: Any
) -> tuple[WallFollower, Minimaze | UncentredTwin]:
    """The wall follower and an environment it can read: `full` is the ordinary view, and what r_I measures.

    With `human_view` ProcGen also draws that view large, for `picture`.
    """
    if env == "minimaze":
        game = build_env(env, levels, num_envs, seed, threads, **options)
        assert isinstance(game, Minimaze)
        return minimaze_follower(), game
    if env != "procgen:maze":
        raise InputError(f"env is {env!r}; accepted: {', '.join(FOLLOWED)}")
    read, shown = (
        make_procgen(
            ProcgenConfig("maze", **view), LevelSet.parse(levels), num_envs, seed, (threads + 1) // 2, False, large
        )
        for view, large in (({**options, **FLAT}, False), (options, human_view))
    )
    if not (isinstance(read, ControlledProcgenEnv) and isinstance(shown, ControlledProcgenEnv)):
        raise InputError("the wall follower cannot read a maze that is hidden or generated; accepted: any other")
    return procgen_maze_follower(), UncentredTwin(read, shown)


def first_frames(env: str, level: ndarray, **options: bool) -> ndarray:
    """The frames that levels `[L]` open with, `[L, …]`."""
    frames = []
    for seed in level.tolist():
        game = build_env(env, (seed,), num_envs=1, **options)
        frames.append(game.observe().obs[0].copy())
        game.close()
    return np.stack(frames)


def minimaze_layout(generator: MazeGenerator, level: ndarray) -> Layout:
    """The mazes of levels `[L]`, with the goal for a wall."""
    mazes = generator(level)
    is_free = ~mazes.walls
    is_free[np.arange(len(level)), mazes.goal] = False
    return Layout(is_free.reshape(len(level), generator.side, generator.side), mazes.start)
