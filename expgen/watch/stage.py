"""Stage: one environment to record, with large pictures, the agent's position and a map of the level."""

import contextlib
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from expgen.envs.gymnasium_env import GymnasiumEnv
from expgen.envs.levels import LevelSet
from expgen.envs.make import build_env
from expgen.envs.minimaze import Minimaze
from expgen.envs.own_env import OWN_ENVS
from expgen.envs.procgen import ProcgenConfig, make_procgen
from expgen.envs.procgen_env import ControlledProcgenEnv
from expgen.envs.vec_env import HasPicture, VecEnv
from expgen.errors import InputError
from expgen.exploration.oracle import FLAT_COLORS, first_frames, make_wall_follower
from expgen.exploration.wall_follower import PROCGEN_SIDE, Layout, WallFollower, reachable_cells, read_procgen_maze
from expgen.watch.tiles import draw_bars, draw_tiles, enlarged

RENDER_OPTIONS = {"render_mode": "rgb_array"}  # makes a Gymnasium environment render pictures


class LevelMap(NamedTuple):
    """The whole level at the start of the episode."""

    picture: ndarray  # [H, W, 3] uint8, cropped to the world
    rows: int
    columns: int
    reachable: int | None  # cells that can be visited without ending the episode, including the first


class Stage:
    """One environment, drawn by `source` if it can, else as its observation; used between `observe` and `act`."""

    def __init__(self, env: VecEnv, source: Any = None) -> None:
        self.env, self.source = env, source if isinstance(source, HasPicture) else None

    def picture(self) -> ndarray:
        """Return the picture to show, `[H, W, 3]` uint8."""
        return self.source.picture(0) if self.source else enlarged(as_picture(self.env.observe().obs[0]))

    def position(self) -> tuple[int, int] | None:
        """Return the agent's row and column; None if unknown."""
        return None

    def level_map(self) -> LevelMap | None:
        """Return a map of the level, None if positions are unknown; called at the start of an episode."""
        return None


class MinimazeStage(Stage):
    """Draws the cells of a minimaze as tiles; a cell is a pixel of the observation."""

    env: Minimaze

    def picture(self) -> ndarray:
        env = self.env
        return draw_tiles(env.observe().obs[0], env.walls[0], env.agent[0], env.goal[0])

    def position(self) -> tuple[int, int] | None:
        row, column = self.env.agent[0].tolist()
        return row, column

    def level_map(self) -> LevelMap | None:
        is_free = ~self.env.walls
        is_free[0, *self.env.goal[0]] = False
        rows, columns = is_free.shape[1:]
        agent = np.ravel_multi_index(tuple(self.env.agent[0]), (rows, columns))
        return LevelMap(self.picture(), rows, columns, int(reachable_cells(Layout(is_free, np.array([agent])))[0]))


class ProcgenStage(Stage):
    """Shows the library's 512 × 512 picture; the position is unknown if games cannot be saved (generated assets)."""

    def __init__(self, env: VecEnv, source: VecEnv, config: ProcgenConfig) -> None:
        super().__init__(env, source)
        self.config = config

    def position(self) -> tuple[int, int] | None:
        if not isinstance(self.source, ControlledProcgenEnv):
            return None
        x, y, width, height = self.source.player_position(0)
        return min(max(height - 1 - int(y // 1), 0), height - 1), min(max(int(x // 1), 0), width - 1)

    def level_map(self) -> LevelMap | None:
        """Return the uncentred view of the first frame, cropped to the world."""
        if not isinstance(self.source, ControlledProcgenEnv):
            return None
        level = int(self.env.observe().level[0])
        whole = _watched_procgen(replace(self.config, center_agent=False), LevelSet((level,)))
        assert isinstance(whole, ControlledProcgenEnv)
        picture, (_, _, width, height) = whole.picture(0).copy(), whole.player_position(0)
        whole.close()
        return LevelMap(crop_to_world(picture, width, height), height, width, self._reachable(level, width))

    def _reachable(self, level: int, width: int) -> int | None:
        if self.config.game != "maze" or self.config.distribution_mode != "easy" or width != PROCGEN_SIDE:
            return None
        frame = first_frames("procgen:maze", np.array([level]), **FLAT_COLORS)
        return int(reachable_cells(read_procgen_maze(frame))[0])


def open_stage(name: str, levels: LevelSet, seed: int = 0, **options: Any) -> Stage:
    """Return a stage with one environment, which `build_env` makes from the same arguments."""
    family, _, game = name.partition(":")
    if family == "procgen":
        config = ProcgenConfig(game, **options)
        watched = _watched_procgen(config, levels, seed)
        return ProcgenStage(watched, watched, config)
    if (family == "gymnasium" or name in OWN_ENVS) and (stage := _rendered(name, levels, seed, options)):
        return stage
    env = build_env(name, levels, 1, seed, **options)
    if isinstance(env, Minimaze):
        return MinimazeStage(env)
    return Stage(env, None if isinstance(env, GymnasiumEnv) else env)


def open_follower_stage(name: str, levels: LevelSet, seed: int = 0, **options: Any) -> tuple[WallFollower, Stage]:
    """Return the wall follower and its stage; it reads ProcGen's Maze in flat colours, the picture is the usual one."""
    follower, env = make_wall_follower(name, levels, 1, seed, human_view=True, **options)
    if isinstance(env, Minimaze):
        return follower, MinimazeStage(env)
    return follower, ProcgenStage(env, env.twin, ProcgenConfig("maze", **options))


def _watched_procgen(config: ProcgenConfig, levels: LevelSet, seed: int = 0) -> VecEnv:
    """Return one ProcGen environment that draws large pictures."""
    return make_procgen(config, levels, 1, seed, threads=0, full_view=False, human_view=True)


def _rendered(name: str, levels: LevelSet, seed: int, options: dict[str, Any]) -> Stage | None:
    """Return a stage with the environment's own pictures; None if it cannot render them."""
    from gymnasium.error import Error

    with contextlib.suppress(InputError, Error, ImportError), contextlib.ExitStack() as opened:
        env = build_env(name, levels, 1, seed, **{**options, **RENDER_OPTIONS})
        opened.callback(env.close)
        picture = (stage := Stage(env, env)).picture()
        if picture.dtype == np.uint8 and picture.shape[2:] == (3,):
            opened.pop_all()  # keep it open
            return stage
    return None


def as_picture(obs: ndarray) -> ndarray:
    """Return one observation as an image `[H, W, 3]` uint8; of stacked grey frames, the last."""
    if obs.ndim == 3:
        return obs if obs.shape[2] == 3 else np.repeat(obs[..., -1:], 3, axis=2)
    return draw_bars(obs)


def crop_to_world(picture: ndarray, width: int, height: int) -> ndarray:
    """Remove the margins beside the shorter side of a world from its square picture."""
    side, longest = len(picture), max(width, height)
    rows, columns = (round(side * length / longest) for length in (height, width))
    top, left = (side - rows) // 2, (side - columns) // 2
    return picture[top : top + rows, left : left + columns]
