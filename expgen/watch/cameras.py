"""Cameras: where the large picture, the agent's place and the map of a level come from, environment by environment."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from expgen.envs.levels import LevelSet
from expgen.envs.minimaze import Minimaze
from expgen.envs.procgen import ProcgenConfig, make_procgen
from expgen.envs.procgen_env import ControlledProcgenEnv
from expgen.envs.vec_env import Pictured, PicturedEnv, VecEnv
from expgen.exploration.oracle import FLAT, first_frames
from expgen.exploration.wall_follower import PROCGEN_SIDE, Layout, reachable_cells, read_procgen_maze
from expgen.watch.tiles import draw_bars, draw_tiles, enlarged


class LevelMap(NamedTuple):
    """The level as it was at the start, seen whole."""

    picture: ndarray  # [H, W, 3] uint8, cut to the world
    rows: int
    columns: int
    reachable: int | None  # cells that an agent could visit without ending the episode, its first included


class Camera:
    """Looks at the only game of any environment, between `observe` and `act`.

    It shows the game's own rendering, else the observation, enlarged or as bars.
    """

    def __init__(self, env: VecEnv, is_rendered: bool = False) -> None:
        self.env = env
        self.source = env if is_rendered and isinstance(env, Pictured) else None

    def picture(self) -> ndarray:
        """The game as a person would want to see it, `[H, W, 3]` uint8."""
        return self.source.picture(0) if self.source else enlarged(as_picture(self.env.observe().obs[0]))

    def place(self) -> tuple[int, int] | None:
        """Row and column of the cell the agent is in; None where nobody can tell."""
        return None

    def level_map(self) -> LevelMap | None:
        """The level seen whole, on which places can be marked; asked for at the start of an episode."""
        return None


class MinimazeCamera(Camera):
    """Draws tiles from what the maze says of itself; a cell is a pixel of the observation."""

    env: Minimaze

    def picture(self) -> ndarray:
        env = self.env
        return draw_tiles(env.observe().obs[0], env.walls[0], env.agent[0], env.goal[0])

    def place(self) -> tuple[int, int] | None:
        row, column = self.env.agent[0].tolist()
        return row, column

    def level_map(self) -> LevelMap | None:
        is_free = ~self.env.walls
        is_free[0, *self.env.goal[0]] = False
        rows, columns = is_free.shape[1:]
        agent = np.ravel_multi_index(tuple(self.env.agent[0]), (rows, columns))
        return LevelMap(self.picture(), rows, columns, int(reachable_cells(Layout(is_free, np.array([agent])))[0]))


class ProcgenCamera(Camera):
    """The library's own large picture, 512 pixels a side; the agent's place from the saved game.

    The place is unknown with generated assets, whose games cannot be saved.
    """

    def __init__(self, env: VecEnv, config: ProcgenConfig) -> None:
        super().__init__(env, is_rendered=True)
        self.config = config

    def place(self) -> tuple[int, int] | None:
        if not isinstance(self.env, ControlledProcgenEnv):
            return None
        x, y, width, height = self.env.whereabouts(0)
        return min(max(height - 1 - int(y // 1), 0), height - 1), min(max(int(x // 1), 0), width - 1)

    def level_map(self) -> LevelMap | None:
        """The uncentred view of the first frame, cut to the world."""
        if not isinstance(self.env, ControlledProcgenEnv):
            return None
        level = int(self.env.observe().level[0])
        whole = watched_procgen(replace(self.config, center_agent=False), LevelSet((level,)))
        assert isinstance(whole, ControlledProcgenEnv)
        picture, (_, _, width, height) = whole.picture(0).copy(), whole.whereabouts(0)
        whole.close()
        return LevelMap(cut_to_world(picture, width, height), height, width, self._reachable(level, width))

    def _reachable(self, level: int, width: int) -> int | None:
        if self.config.game != "maze" or self.config.distribution_mode != "easy" or width != PROCGEN_SIDE:
            return None
        return int(reachable_cells(read_procgen_maze(first_frames("procgen:maze", np.array([level]), **FLAT)))[0])


def watched_procgen(config: ProcgenConfig, levels: LevelSet, seed: int = 0) -> PicturedEnv:
    """One game of ProcGen that draws large pictures."""
    env = make_procgen(config, levels, 1, seed, threads=0, full_view=False, human_view=True)
    assert isinstance(env, Pictured)
    return env


def as_picture(obs: ndarray) -> ndarray:
    """One observation as a person can look at it, `[H, W, 3]` uint8; of stacked grey frames the last."""
    if obs.ndim == 3:
        return obs if obs.shape[2] == 3 else np.repeat(obs[..., -1:], 3, axis=2)
    return draw_bars(obs)


def cut_to_world(picture: ndarray, width: int, height: int) -> ndarray:
    """A square picture of a world, without the margins beside its shorter side."""
    side, longest = len(picture), max(width, height)
    rows, columns = (round(side * length / longest) for length in (height, width))
    top, left = (side - rows) // 2, (side - columns) // 2
    return picture[top : top + rows, left : left + columns]
