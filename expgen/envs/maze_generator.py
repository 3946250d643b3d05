"""Mazes from level seeds, a whole batch at once, and kept ready by level, since alone a level costs far more.

A level is a perfect maze of c x c cells, c uniform on min_cells..max_cells, carved by Kruskal's algorithm: walls
between cells fall in random order, each only if it parts two regions. Cells and the corridors between them are one
pixel each, so the maze spans 2c-1 pixels; it sits in the middle of a world of fixed side with wall all around. The
agent starts in the lower left corner, the goal lies on any other free pixel. This is ProcGen's Maze, with one choice
of ours: a theme colours walls as well as floor, where ProcGen varies the floor alone. Agent and goal look the same in
every level.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from expgen.random import counter_hash, draw_below

AGENT_COLOR = np.array([255, 255, 255], dtype=np.uint8)
GOAL_COLOR = np.array([255, 40, 40], dtype=np.uint8)
THEMES = np.array(  # wall, floor; walls are the lighter, no colour comes near the agent's or the goal's
    [
        [[196, 164, 116], [60, 44, 36]],  # sand on earth
        [[120, 168, 92], [36, 52, 36]],  # hedge on moss
        [[132, 148, 172], [40, 44, 60]],  # slate on night
        [[172, 120, 168], [52, 36, 60]],  # lilac on plum
        [[92, 164, 168], [28, 48, 68]],  # ice on sea
        [[176, 132, 84], [36, 60, 60]],  # wood on teal
        [[148, 148, 148], [72, 48, 48]],  # stone on brick
        [[180, 180, 108], [44, 44, 44]],  # straw on coal
    ],
    dtype=np.int16,
)


class Mazes(NamedTuple):
    """L levels in a world of `side` x `side` pixels; positions are row * side + column."""

    walls: ndarray  # [L, side * side] bool
    frame: ndarray  # [L, side * side, 3] uint8, the picture without the agent
    start: ndarray  # [L] int64
    goal: ndarray  # [L] int64


class MazeGenerator:
    """Level seeds in, mazes out; a level's maze depends on its seed and the arguments here alone."""

    def __init__(self, min_cells: int, max_cells: int, num_themes: int, texture: int):
        self.side = 2 * max_cells + 1
        self._sizes = min_cells, max_cells
        self._num_themes, self._texture = num_themes, texture
        cell = np.arange(max_cells**2).reshape(max_cells, max_cells)
        across = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()])
        upright = np.stack([cell[:-1].ravel(), cell[1:].ravel()])
        self._edge = np.concatenate([across, upright], axis=1)  # [2, E] the two cells each inner wall parts
        row, column = np.divmod(cell.ravel(), max_cells)
        self._cell_at = (2 * row + 1) * self.side + 2 * column + 1  # [cells] position in a maze of full size
        self._edge_at = self._cell_at[self._edge].sum(axis=0) // 2  # [E] half-way between its cells
        self._cell_needs = np.maximum(row, column) + 1  # [cells] the smallest maze that has this cell
        self._edge_needs = self._cell_needs[self._edge].max(axis=0)  # [E]

    def __call__(self, level: ndarray) -> Mazes:
        """The mazes of `level`, `[L]` integers."""
        key = counter_hash(level.astype(np.uint64), np.uint64(0))[:, None]  # [L, 1]
        num_edges, num_pixels = len(self._edge_at), self.side**2
        word = counter_hash(key, np.arange(3 + num_edges + num_pixels, dtype=np.uint64))  # [L, 3 + E + pixels]
        least, most = self._sizes
        size = least + draw_below(word[:, 0], most - least + 1)  # [L]
        walls = self._carve(size, word[:, 3 : 3 + num_edges])
        start = self._cell_at[(size - 1) * most] + (most - size) * (self.side + 1)  # [L] lower left
        goal = _pick_free(walls, start, word[:, 1])
        theme = THEMES[draw_below(word[:, 2], self._num_themes)]  # [L, 2, 3]
        return Mazes(walls, self._paint(walls, goal, theme, word[:, 3 + num_edges :]), start, goal)

    def _carve(self, size: ndarray, word: ndarray) -> ndarray:
        """Kruskal's algorithm on all levels in step: `word` [L, E] orders the inner walls; walls [L, pixels]."""
        num = len(size)
        here = np.arange(num)
        is_inside = self._edge_needs <= size[:, None]  # [L, E]
        order = np.argsort(word, axis=1, kind="stable").T  # [E, L]
        region = np.tile(np.arange(len(self._cell_at), dtype=np.int16), (num, 1))  # [L, cells]
        falls = np.zeros_like(is_inside)  # [L, E]
        for edge in order:  # [L] each level's next inner wall
            one = region[here, self._edge[0, edge]]  # [L]
            other = region[here, self._edge[1, edge]]
            join = (one != other) & is_inside[here, edge]
            falls[here, edge] = join
            other[~join] = -1  # no region has this number
            np.copyto(region, one[:, None], where=region == other[:, None])
        walls = np.ones((num, self.side**2), dtype=bool)
        middle = (self._sizes[1] - size)[:, None] * (self.side + 1)  # [L, 1] shift of a small maze into the middle
        for at, is_open in ((self._cell_at, self._cell_needs <= size[:, None]), (self._edge_at, falls)):
            level, place = np.nonzero(is_open)
            walls[level, at[place] + middle[level, 0]] = False
        return walls

    def _paint(self, walls: ndarray, goal: ndarray, theme: ndarray, word: ndarray) -> ndarray:
        """Theme colours, a mottled floor in the place of ProcGen's background pictures, the goal."""
        shade = draw_below(word, 2 * self._texture + 1).astype(np.int16) - self._texture  # [L, pixels]
        shade[walls] = 0
        frame = np.where(walls[:, :, None], theme[:, None, 0], theme[:, None, 1])  # [L, pixels, 3]
        frame += shade[:, :, None]
        frame = frame.clip(0, 255).astype(np.uint8)
        frame[np.arange(len(goal)), goal] = GOAL_COLOR
        return frame


def _pick_free(walls: ndarray, start: ndarray, word: ndarray) -> ndarray:
    """One free pixel per level other than `start`, all alike likely; `[L]`."""
    free = ~walls
    free[np.arange(len(start)), start] = False
    count = np.cumsum(free, axis=1, dtype=np.int32)  # [L, pixels]
    chosen = draw_below(word, count[:, -1])
    return (count <= chosen[:, None]).sum(axis=1)


class MazeCache:
    """At most `capacity` mazes; when there is no room left it starts anew. What it holds never changes a result."""

    def __init__(self, generator: MazeGenerator, capacity: int):
        self._generator = generator
        self._capacity = capacity
        self._level = np.empty(0, dtype=np.int64)  # [K] sorted
        self._slot = np.empty(0, dtype=np.int64)  # [K] where each level lies in `mazes`
        self.mazes = Mazes(*(np.empty((capacity, *part.shape[1:]), part.dtype) for part in generator(self._level)))

    def slot(self, level: ndarray, upcoming: Callable[[], ndarray]) -> ndarray:
        """Where each level lies in `mazes`, `[len(level)]`, valid until the next call.

        If one has to be generated, the `upcoming` ones are generated with it: alone, a level costs far more.
        """
        if not self._level.size or (self._level.take(self._find(level), mode="clip") != level).any():
            self._add(np.unique(np.concatenate([level, upcoming()])))
        return self._slot[self._find(level)]

    def _find(self, level: ndarray) -> ndarray:
        return np.searchsorted(self._level, level)

    def _add(self, level: ndarray) -> None:
        fresh = level[~np.isin(level, self._level)]
        if len(self._level) + len(fresh) > self._capacity:
            fresh, self._level, self._slot = level, self._level[:0], self._slot[:0]
        slot = np.arange(len(self._level), len(self._level) + len(fresh))
        for part, new in zip(self.mazes, self._generator(fresh), strict=True):
            part[slot] = new
        joined = np.concatenate([self._level, fresh])
        order = np.argsort(joined, kind="stable")
        self._level, self._slot = joined[order], np.concatenate([self._slot, slot])[order]
