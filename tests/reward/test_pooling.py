"""pooled against cell-by-cell averages."""

import numpy as np
import pytest
import torch

from expgen.errors import InputError
from expgen.reward.pooling import LARGEST_POOL, pooled


@pytest.mark.parametrize(("side", "pool"), [(64, 3), (11, 1), (11, 2), (11, 11), (7, 4)])
def test_pooled_cells_are_averages_without_incomplete_cells(side: int, pool: int):
    frame = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 3, side, side, 3), dtype=np.uint8))
    cell, white = pooled(frame, pool)
    cells = side // pool
    assert cell.shape == (2, 3, cells * cells, 3) and white == 255 * pool * pool
    for row, column in ((0, 0), (cells - 1, 0), (cells // 2, cells - 1)):
        patch = frame[..., row * pool : (row + 1) * pool, column * pool : (column + 1) * pool, :] / 255
        torch.testing.assert_close(cell[:, :, row * cells + column] / white, patch.mean((2, 3)))


def test_white_image_in_the_largest_cells_does_not_overflow():
    cell, white = pooled(torch.full((1, 1, 22, 22, 3), 255, dtype=torch.uint8), LARGEST_POOL)
    assert (cell == white).all()


def test_64_pixels_give_21_by_21_cells():
    frame = torch.zeros(1, 1, 64, 64, 3, dtype=torch.uint8)
    frame[..., 63, :, :] = frame[..., :, 63, :] = 255
    cell, _ = pooled(frame, 3)
    assert cell.shape[2:] == (441, 3) and not cell.any()


def test_vectors_are_not_pooled():
    vector = torch.randn(2, 3, 4)
    cell, white = pooled(vector, 3)
    assert white == 1 and torch.equal(cell, vector[..., None])
    grey = torch.arange(36, dtype=torch.uint8).view(1, 1, 6, 6)
    assert pooled(grey, 3).cell.flatten().tolist() == [63, 90, 225, 252]


def test_pooled_rejects_cells_larger_than_the_image():
    with pytest.raises(InputError, match="--pool is 5 for images with a side of 4; accepted: 1 to 4"):
        pooled(torch.zeros(1, 1, 9, 4, 3, dtype=torch.uint8), 5)
