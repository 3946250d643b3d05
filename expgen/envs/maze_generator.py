"""Mazes generated from level seeds in batches, and a cache of them.

A level is a perfect maze of c x c cells, c uniform on min_cells..max_cells, carved by Kruskal's algorithm: walls
between cells are visited in random order, and each is removed if it separates two regions. Cells and the corridors
between them are one pixel each, so the maze spans 2c-1 pixels; it is centred in a world of fixed side and surrounded by
wall. The agent starts in the lower left corner, the goal is on any other free pixel. This is ProcGen's Maze except that
a theme colours walls as well as floor, where ProcGen varies only the floor. Agent and goal look the same in all levels.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from expgen.random import counter_hash, draw_below

AGENT_COLOR = np.array([255, 255, 255], dtype=np.uint8)
GOAL_COLOR = np.array([255, 40, 40], dtype=np.uint8)
THEMES = np.array(  # wall, floor; walls are lighter, and all colours differ from those of agent and goal
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
    """Generates mazes; the maze of a level depends only on its seed and the arguments of the constructor."""

    def __init__(self, min_cells: int, max_cells: int, num_themes: int, texture: int):
        self.side = 2 * max_cells + 1
        self._sizes = min_cells, max_cells
        self._num_themes, self._texture = num_themes, texture
        cell = np.arange(max_cells**2).reshape(max_cells, max_cells)
        horizontal = np.stack([cell[:, :-1].ravel(), cell[:, 1:].ravel()])
        vertical = np.stack([cell[:-1].ravel(), cell[1:].ravel()])
        self._edge = np.concatenate([horizontal, vertical], axis=1)  # [2, E] the cells on both sides of an inner wall
        row, column = np.divmod(cell.ravel(), max_cells)
        self._cell_position = (2 * row + 1) * self.side + 2 * column + 1  # [cells] in a maze of full size
        self._edge_position = self._cell_position[self._edge].sum(axis=0) // 2  # [E] half-way between the two cells
        self._cell_min_size = np.maximum(row, column) + 1  # [cells] smallest maze with this cell
        self._edge_min_size = self._cell_min_size[self._edge].max(axis=0)  # [E]

    def __call__(self, level: ndarray) -> Mazes:
        """Generate the mazes of `level`, `[L]` integers."""
        key = counter_hash(level.astype(np.uint64), np.uint64(0))[:, None]  # [L, 1]
        num_edges, num_pixels = len(self._edge_position), self.side**2
        word = counter_hash(key, np.arange(3 + num_edges + num_pixels, dtype=np.uint64))  # [L, 3 + E + pixels]
        min_cells, max_cells = self._sizes
        size = min_cells + draw_below(word[:, 0], max_cells - min_cells + 1)  # [L]
        walls = self._carve(size, word[:, 3 : 3 + num_edges])
        start = self._cell_position[(size - 1) * max_cells] + (max_cells - size) * (self.side + 1)  # [L] lower left
        goal = _pick_free(walls, start, word[:, 1])
        theme = THEMES[draw_below(word[:, 2], self._num_themes)]  # [L, 2, 3]
        return Mazes(walls, self._paint(walls, goal, theme, word[:, 3 + num_edges :]), start, goal)

    def _carve(self, size: ndarray, word: ndarray) -> ndarray:
        """Run Kruskal's algorithm on all levels; `word` [L, E] orders the inner walls. Returns walls [L, pixels]."""
        num, row = len(size), np.arange(len(size))
        is_inside = self._edge_min_size <= size[:, None]  # [L, E]
        order = np.argsort(word, axis=1, kind="stable").T  # [E, L]
        region = np.tile(np.arange(len(self._cell_position), dtype=np.int16), (num, 1))  # [L, cells]
        is_removed = np.zeros_like(is_inside)  # [L, E]
        for edge in order:  # [L] the next inner wall of each level
            one = region[row, self._edge[0, edge]]  # [L]
            other = region[row, self._edge[1, edge]]
            removes = (one != other) & is_inside[row, edge]
            is_removed[row, edge] = removes
            other[~removes] = -1  # no region has this number
            np.copyto(region, one[:, None], where=region == other[:, None])
        walls = np.ones((num, self.side**2), dtype=bool)
        shift = (self._sizes[1] - size) * (self.side + 1)  # [L] centres a small maze
        is_cell = self._cell_min_size <= size[:, None]  # [L, cells]
        for position, is_open in ((self._cell_position, is_cell), (self._edge_position, is_removed)):
            level, index = np.nonzero(is_open)
            walls[level, position[index] + shift[level]] = False
        return walls

    def _paint(self, walls: ndarray, goal: ndarray, theme: ndarray, word: ndarray) -> ndarray:
        """Return frames with theme colours, a textured floor instead of ProcGen's background pictures, and the goal."""
        shade = draw_below(word, 2 * self._texture + 1).astype(np.int16) - self._texture  # [L, pixels]
        shade[walls] = 0
        frame = np.where(walls[:, :, None], theme[:, None, 0], theme[:, None, 1])  # [L, pixels, 3]
        frame += shade[:, :, None]
        frame = frame.clip(0, 255).astype(np.uint8)
        frame[np.arange(len(goal)), goal] = GOAL_COLOR
        return frame


def _pick_free(walls: ndarray, start: ndarray, word: ndarray) -> ndarray:
    """Choose one free pixel per level other than `start`, uniformly; `[L]`."""
    free = ~walls
    free[np.arange(len(start)), start] = False
    count = np.cumsum(free, axis=1, dtype=np.int32)  # [L, pixels]
    chosen = draw_below(word, count[:, -1])
    return (count <= chosen[:, None]).sum(axis=1)


class MazeCache:
    """A cache of at most `capacity` mazes, emptied when full; results do not depend on its contents."""

    def __init__(self, generator: MazeGenerator, capacity: int):
        self._generator, self._capacity = generator, capacity
        self._slot: dict[int, int] = {}  # level → index in `mazes`
        empty = generator(np.empty(0, dtype=np.int64))
        self.mazes = Mazes(*(np.empty((capacity, *part.shape[1:]), part.dtype) for part in empty))

    def slot(self, level: ndarray, upcoming: Callable[[], ndarray]) -> ndarray:
        """Return the index of each level in `mazes`, `[len(level)]`, valid until the next call.

        If a level is missing, the `upcoming` levels are generated with it: in a batch, a level costs far less.
        """
        levels = level.tolist()
        if not self._slot.keys() >= set(levels):
            self._add({*levels, *upcoming().tolist()})
        return np.array([self._slot[each] for each in levels])

    def _add(self, levels: set[int]) -> None:
        missing = sorted(levels - self._slot.keys())
        if len(self._slot) + len(missing) > self._capacity:
            self._slot.clear()
            missing = sorted(levels)
        begin, end = len(self._slot), len(self._slot) + len(missing)
        for part, new in zip(self.mazes, self._generator(np.array(missing)), strict=True):
            part[begin:end] = new
        self._slot.update(zip(missing, range(begin, end)))
