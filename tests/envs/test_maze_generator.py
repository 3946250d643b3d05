"""MazeGenerator against a slow implementation, and properties of its mazes."""

from collections import deque

import numpy as np
import pytest

from expgen.envs.maze_generator import AGENT_COLOR, GOAL_COLOR, THEMES, MazeGenerator, Mazes


class PlainRandom:
    """SplitMix64 in Python integers."""

    def __init__(self, key: int):
        self.key = key

    def word(self, index: int) -> int:
        mask = 2**64 - 1
        z = (self.key + (index + 1) * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def below(self, index: int, limit: int) -> int:
        return (self.word(index) >> 32) * limit >> 32


def plain_maze(level: int, min_cells: int, max_cells: int, num_themes: int, texture: int) -> tuple[np.ndarray, ...]:
    """Generate one level cell by cell; return walls, frame, start, goal."""
    random = PlainRandom(PlainRandom(level).word(0))
    size = min_cells + random.below(0, max_cells - min_cells + 1)
    side, margin = 2 * max_cells + 1, max_cells + 1 - size
    edges = [((r, c), (r, c + 1)) for r in range(max_cells) for c in range(max_cells - 1)]
    edges += [((r, c), (r + 1, c)) for r in range(max_cells - 1) for c in range(max_cells)]
    walls = np.ones((side, side), dtype=bool)
    region = {}
    for row in range(size):
        for column in range(size):
            region[row, column] = {(row, column)}
            walls[margin + 2 * row, margin + 2 * column] = False
    for index in sorted(range(len(edges)), key=lambda index: random.word(3 + index)):
        one, other = edges[index]
        if one in region and other in region and region[one] is not region[other]:
            region[one] |= region[other]
            for cell in region[other]:
                region[cell] = region[one]
            walls[margin + one[0] + other[0], margin + one[1] + other[1]] = False
    start = (margin + 2 * size - 2, margin)
    others = [(r, c) for r in range(side) for c in range(side) if not walls[r, c] and (r, c) != start]
    goal = others[random.below(1, len(others))]
    wall_color, floor_color = THEMES[random.below(2, num_themes)]
    frame = np.zeros((side, side, 3), dtype=np.uint8)
    for row in range(side):
        for column in range(side):
            shade = random.below(3 + len(edges) + row * side + column, 2 * texture + 1) - texture
            frame[row, column] = wall_color if walls[row, column] else np.clip(floor_color + shade, 0, 255)
    frame[goal] = GOAL_COLOR
    return walls, frame, np.array(start), np.array(goal)


def distances(walls: np.ndarray, start: int) -> dict[int, int]:
    """Return the steps from `start` to every reachable free pixel; `walls` is [side, side]."""
    side = len(walls)
    flat = walls.ravel()
    found, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        for near in (here - 1, here + 1, here - side, here + side):
            if not flat[near] and near not in found:
                found[near] = found[here] + 1
                queue.append(near)
    return found


@pytest.mark.parametrize("min_cells, max_cells, num_themes, texture", [(2, 5, 8, 12), (4, 4, 1, 0), (2, 7, 3, 80)])
def test_maze_generator_matches_slow_implementation(
    min_cells: int, max_cells: int, num_themes: int, texture: int
) -> None:
    level = np.concatenate([np.arange(40), [2**31 - 2, 123456789]])
    mazes = MazeGenerator(min_cells, max_cells, num_themes, texture)(level)
    for index, seed in enumerate(level.tolist()):
        walls, frame, start, goal = plain_maze(seed, min_cells, max_cells, num_themes, texture)
        assert (mazes.walls[index] == walls.ravel()).all()
        assert (mazes.frame[index] == frame.reshape(-1, 3)).all()
        assert mazes.start[index] == start @ [len(walls), 1] and mazes.goal[index] == goal @ [len(walls), 1]


@pytest.fixture(scope="module")
def mazes() -> Mazes:
    return MazeGenerator(2, 5, 8, 12)(np.arange(1000))


def test_mazes_are_connected_trees(mazes: Mazes) -> None:
    free = ~mazes.walls.reshape(-1, 11, 11)
    num_free = free.sum(axis=(1, 2))
    passages = (free[:, 1:] & free[:, :-1]).sum(axis=(1, 2)) + (free[:, :, 1:] & free[:, :, :-1]).sum(axis=(1, 2))
    assert (passages == num_free - 1).all()
    for walls, start, count in zip(~free, mazes.start.tolist(), num_free, strict=True):
        assert len(distances(walls, start)) == count
    border = np.ones((11, 11), dtype=bool)
    border[1:-1, 1:-1] = False
    assert not free[:, border].any()


def test_maze_sizes_are_uniform(mazes: Mazes) -> None:
    cells = np.sqrt(((~mazes.walls).sum(axis=1) + 1) / 2)
    size, count = np.unique(cells, return_counts=True)
    assert size.tolist() == [2, 3, 4, 5]
    assert np.abs(count - 250).max() < 70


def test_start_is_lower_left_and_goal_is_anywhere_else(mazes: Mazes) -> None:
    row, column = np.divmod(mazes.start, 11)
    for index, walls in enumerate(mazes.walls.reshape(-1, 11, 11)):
        free_row, free_column = np.nonzero(~walls)
        assert (row[index], column[index]) == (free_row.max(), free_column.min())
    assert (mazes.goal != mazes.start).all()
    assert not np.take_along_axis(mazes.walls, mazes.goal[:, None], axis=1).any()
    largest = (~mazes.walls).sum(axis=1) == 49
    assert len(np.unique(mazes.goal[largest])) > 60  # of the 65 pixels a 9 x 9 maze can have free


def test_levels_with_equal_walls_look_different(mazes: Mazes) -> None:
    assert len(np.unique(mazes.frame.reshape(1000, -1), axis=0)) == 1000
    assert len(np.unique(mazes.walls, axis=0)) < 1000


def test_maze_generator_uses_every_theme(mazes: Mazes) -> None:
    wall_color = mazes.frame[:, 0]  # the corner of the world is wall
    assert {tuple(color) for color in wall_color.tolist()} == {tuple(theme[0]) for theme in THEMES.tolist()}


def test_agent_and_goal_colors_differ_from_all_themes() -> None:
    texture = 12
    theme_colors = THEMES.reshape(-1, 3)
    nearest = [np.abs(theme_colors - color.astype(int)).max(axis=1).min() for color in (AGENT_COLOR, GOAL_COLOR)]
    assert min(nearest) > 2 * texture + 40
    wall, floor = THEMES[:, 0].min(axis=1), THEMES[:, 1].max(axis=1)
    assert (wall > floor + texture).all()


def test_maze_does_not_depend_on_its_batch(mazes: Mazes) -> None:
    alone = MazeGenerator(2, 5, 8, 12)(np.array([777]))
    for part, one in zip(mazes, alone, strict=True):
        assert (part[777] == one[0]).all()
