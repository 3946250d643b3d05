"""How much of a level there is to cover: counts on layouts and on first frames."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy import ndarray

from expgen.exploration.wall_follower import Layout, next_heading, steps
from expgen.reward.pooling import pooled

POOL = 3  # pixels per side of Jumper's cells, its agent's size
DIRT = (191, 63, 191)  # in Miner's flat colours
MINER_SIDE = 10  # cells per side, easy mode


def reachable_cells(layout: Layout) -> ndarray:
    """Free cells connected to the agent's, its own included, `[N]`."""
    is_free, agent = layout
    reached = np.zeros_like(is_free)
    reached.reshape(len(agent), -1)[np.arange(len(agent)), agent] = True
    count = np.zeros(len(agent), dtype=np.int64)
    while (grown := reached.sum((1, 2))).sum() > count.sum():
        count = grown
        spread = reached.copy()
        for axis in (1, 2):
            for shift in (-1, 1):  # what is rolled over the border meets a wall there
                spread |= np.roll(reached, shift, axis)
        reached = spread & is_free
    return count


def tour_frames(layout: Layout, num_steps: int, alike: Sequence[tuple[int, int]] = ()) -> ndarray:
    """Distinct frames a wall follower shows in so many steps, the first included, `[N]`.

    A frame is a cell and the side the agent looks to: that of its last move to the right or left, left at first. In
    the cells `alike`, rows and columns, both sides are drawn the same.
    """
    N, height, width = layout.is_free.shape
    here, agent = np.arange(N), layout.agent.copy()
    heading, side = np.zeros(N, dtype=np.int64), np.ones(N, dtype=np.int64)
    shown = np.zeros((N, 2, height * width), dtype=bool)
    shown[here, side, agent] = True
    for _ in range(num_steps):
        heading = next_heading(layout._replace(agent=agent), heading)
        agent = agent + steps(layout)[heading]
        side = np.where(heading == 0, 0, np.where(heading == 2, 1, side))
        shown[here, side, agent] = True
    for row, column in alike:
        shown[:, 0, row * width + column] |= shown[:, 1, row * width + column]
        shown[:, 1, row * width + column] = False
    return shown.sum((1, 2))


def background_cells(frame: ndarray) -> ndarray:
    """Cells without any red, pooled 3 × 3, of frames on black `[N, 64, 64, 3]`: `[N]`."""
    cell = pooled(torch.from_numpy(frame).unsqueeze(0), POOL).cell[0]  # [N, cells, C]
    return (cell[..., 0] == 0).sum(1).numpy()


def dirt_cells(frame: ndarray) -> ndarray:
    """Cells of Miner's grid that hold dirt, of frames in flat colours `[N, 64, 64, 3]`: `[N]`."""
    middle = ((np.arange(MINER_SIDE) + 0.5) * frame.shape[1] / MINER_SIDE).astype(np.int64)  # [10]
    return (frame[:, middle][:, :, middle] == DIRT).all(-1).sum((1, 2))
