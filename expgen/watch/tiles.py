"""Pictures drawn by hand: mazes as tiles, enlarged pixels, and bars for observations that are no picture."""

import numpy as np
from numpy import ndarray
from PIL import Image, ImageDraw

SIDE = 512  # pixels of a large picture, or a little less
SMOOTH = 2  # mazes are drawn so many times larger, for smooth edges
AGENT, GOAL, OUTLINE = (255, 255, 255), (255, 70, 60), (25, 25, 30)
BAR, PAPER, AXIS = (70, 130, 200), (245, 245, 248), (150, 150, 160)


def enlarged(picture: ndarray) -> ndarray:
    """`[H, W, 3]` with each pixel a square, about SIDE pixels a side."""
    scale = max(1, SIDE // max(picture.shape[:2]))
    return picture.repeat(scale, 0).repeat(scale, 1)


def draw_tiles(obs: ndarray, walls: ndarray, agent: ndarray, goal: ndarray) -> ndarray:
    """A maze of pixels `[H, W, 3]` with `walls` `[H, W]`, large: a disc on the cell `agent`, a diamond on `goal`."""
    tile = SMOOTH * max(4, SIDE // max(walls.shape))
    color = obs.copy()
    for row, column in (agent, goal):  # the floor below them, which nobody sees
        color[row, column] = np.median(obs[~walls], axis=0)
    canvas = Image.fromarray(color.repeat(tile, 0).repeat(tile, 1))
    draw, inset, middle, line = ImageDraw.Draw(canvas), tile // 7, tile // 2, tile // 14
    top, left = (int(at) * tile for at in agent)
    draw.ellipse((left + inset, top + inset, left + tile - inset, top + tile - inset), AGENT, OUTLINE, line)
    top, left = (int(at) * tile for at in goal)
    corners = ((middle, inset), (tile - inset, middle), (middle, tile - inset), (inset, middle))
    draw.polygon([(left + x, top + y) for x, y in corners], GOAL, OUTLINE, line)
    return np.asarray(canvas.reduce(SMOOTH))


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
