"""Pictures drawn by hand: mazes of crisp tiles, enlarged pixels, and bars for observations that are no picture."""

from functools import lru_cache

import numpy as np
from numpy import ndarray
from PIL import Image, ImageDraw

SIDE = 512  # pixels of a large picture, or a little less
SMOOTH = 4  # sprites are drawn so many times larger, for smooth edges
AGENT, GOAL, OUTLINE = (255, 255, 255), (255, 70, 60), (25, 25, 30)
BAR, PAPER, AXIS = (70, 130, 200), (245, 245, 248), (150, 150, 160)


def enlarged(picture: ndarray) -> ndarray:
    """`[H, W, 3]` with each pixel a square, about SIDE pixels a side."""
    scale = max(1, SIDE // max(picture.shape[:2]))
    return picture.repeat(scale, 0).repeat(scale, 1)


def draw_tiles(obs: ndarray, walls: ndarray, agent: ndarray, goal: ndarray) -> ndarray:
    """A maze of pixels `[H, W, 3]` as tiles: bevelled `walls` `[H, W]`, a disc on `agent`, a diamond on `goal`."""
    tile = max(4, SIDE // max(walls.shape))
    color = obs.astype(np.int16)
    for row, column in (agent, goal):  # the floor below them, which nobody sees
        color[row, column] = np.median(obs[~walls], axis=0)
    picture = color.repeat(tile, 0).repeat(tile, 1)
    wall = walls.repeat(tile, 0).repeat(tile, 1)
    edge = max(1, tile // 14)
    along = np.arange(tile)
    bevel = np.where(along < edge, 22, np.where(along >= tile - edge, -26, 0))
    relief = np.maximum(bevel[:, None], bevel) + np.minimum(bevel[:, None], bevel)
    shade = np.tile(relief, walls.shape)
    picture += np.where(wall, shade, -shade // 8)[..., None]
    picture = picture.clip(0, 255).astype(np.uint8)
    for (row, column), sprite in ((goal, _diamond(tile)), (agent, _disc(tile))):
        at = np.s_[row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
        opacity = sprite[..., 3:] / 255
        picture[at] = (sprite[..., :3] * opacity + picture[at] * (1 - opacity)).astype(np.uint8)
    return picture


def draw_bars(vector: ndarray) -> ndarray:
    """A vector as bars up and down from a line in the middle, squashed to fit, `[64, W, 3]`."""
    height, each = 64, max(2, min(24, 192 // len(vector)))
    picture = np.full((height, each * len(vector), 3), PAPER, dtype=np.uint8)
    squashed = np.nan_to_num(vector / (1 + np.abs(vector)))
    for i, value in enumerate(squashed.tolist()):
        end = round(height / 2 * (1 - value))
        picture[min(end, height // 2) : max(end, height // 2), i * each : (i + 1) * each - 1] = BAR
    picture[height // 2] = AXIS
    return picture


@lru_cache(maxsize=4)
def _disc(tile: int) -> ndarray:
    canvas, draw = _canvas(tile)
    size, inset = tile * SMOOTH, tile * SMOOTH // 7
    draw.ellipse((inset, inset, size - inset, size - inset), fill=AGENT, outline=OUTLINE, width=size // 14)
    return _shrunk(canvas, tile)


@lru_cache(maxsize=4)
def _diamond(tile: int) -> ndarray:
    canvas, draw = _canvas(tile)
    size, inset = tile * SMOOTH, tile * SMOOTH // 8
    middle, far = size // 2, size - inset
    draw.polygon([(middle, inset), (far, middle), (middle, far), (inset, middle)], GOAL, OUTLINE, size // 14)
    return _shrunk(canvas, tile)


def _canvas(tile: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    canvas = Image.new("RGBA", (tile * SMOOTH, tile * SMOOTH), (*OUTLINE, 0))
    return canvas, ImageDraw.Draw(canvas)


def _shrunk(canvas: Image.Image, tile: int) -> ndarray:
    return np.asarray(canvas.resize((tile, tile), Image.Resampling.BOX), dtype=np.float64)
