"""Cell and frame counts, by hand and against slow implementations."""

import numpy as np

from expgen.exploration.oracle import MINER_DIRT, background_cells, dirt_cells
from expgen.exploration.wall_follower import Layout, reachable_cells, tour_frames


def maze(*rows: str) -> Layout:
    picture = np.array([list(row) for row in rows])
    return Layout((picture != "#")[None], np.flatnonzero(picture.ravel() == "A"))


def test_reachable_cells_by_hand():
    """A free cell behind a wall is not reachable; diagonals do not connect."""
    assert reachable_cells(maze("######", "#A..##", "##.#.#", "######")).tolist() == [4]
    assert reachable_cells(maze("###", "#A#", "###")).tolist() == [1]


def test_reachable_cells_match_slow_search():
    rng = np.random.default_rng(0)
    is_free = rng.random((50, 9, 8)) < 0.6
    is_free[:, [0, -1]] = is_free[:, :, [0, -1]] = False
    is_free[:, 4, 3] = True
    layout = Layout(is_free, np.full(50, 4 * 8 + 3))
    for n, count in enumerate(reachable_cells(layout)):
        found, ahead = {(4, 3)}, [(4, 3)]
        while ahead:
            r, c = ahead.pop()
            for cell in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                if is_free[n][cell] and cell not in found:
                    found.add(cell)
                    ahead.append(cell)
        assert count == len(found)


def test_tour_frames_by_hand():
    """In a corridor the agent faces right on the way out and left on the way back.

    It faces only left in the first cell and only right in the last; in a shaft it never turns.
    """
    assert tour_frames(maze("#####", "#A..#", "#####"), 20).tolist() == [1 + 2 + 1]
    assert tour_frames(maze("###", "#.#", "#.#", "#A#", "###"), 20).tolist() == [3]
    assert tour_frames(maze("#####", "#A..#", "#####"), 1).tolist() == [2]
    assert tour_frames(maze("###", "#A#", "###"), 20).tolist() == [1]


def test_background_cells_have_no_red():
    frame = np.zeros((2, 64, 64, 3), dtype=np.uint8)
    frame[..., 1] = 200  # green does not matter
    frame[1, :3, :4, 0] = 1  # touches two cells
    frame[1, 63, :, 0] = 255  # fills no cell
    assert background_cells(frame).tolist() == [441, 439]


def test_dirt_cells_by_hand():
    frame = np.zeros((1, 64, 64, 3), dtype=np.uint8)
    frame[0, :19, :] = MINER_DIRT  # three of ten rows: their middles are 3, 9 and 16
    frame[0, :7, :7] = (255, 191, 191)  # a boulder
    assert dirt_cells(frame).tolist() == [29]
