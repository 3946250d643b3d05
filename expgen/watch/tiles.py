"""Pictures for the inspector: mazes as tiles, enlarged pixels, and bars for vector observations."""

import numpy as np
from numpy import ndarray
from PIL import Image, ImageDraw

SIDE = 512  # largest side of a picture, in pixels
SMOOTH = 2  # oversampling factor for smooth edges
AGENT, GOAL, OUTLINE = (255, 255, 255), (255, 70, 60), (25, 25, 30)
BAR, PAPER, AXIS = (70, 130, 200), (245, 245, 248), (150, 150, 160)


def enlarged(picture: ndarray) -> ndarray:
    """Enlarge `[H, W, 3]` by a whole factor to at most SIDE pixels."""
    scale = max(1, SIDE // max(picture.shape[:2]))
    return picture.repeat(scale, 0).repeat(scale, 1)


def draw_tiles(obs: ndarray, walls: ndarray, agent: ndarray, goal: ndarray) -> ndarray:
    """Draw a maze `[H, W, 3]` with `walls` `[H, W]` enlarged, with a disc at `agent` and a diamond at `goal`."""
    tile = SMOOTH * max(4, SIDE // max(walls.shape))
    color = obs.copy()
    for row, column in (agent, goal):  # paint the floor below them
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
    """Draw a vector as bars from a line in the middle, squashed by x / (1 + |x|), `[64, W, 3]`."""
    height, bar = 64, max(2, min(24, 192 // len(vector)))
    picture = np.full((height, bar * len(vector), 3), PAPER, dtype=np.uint8)
    squashed = np.nan_to_num(vector / (1 + np.abs(vector)))
    for i, value in enumerate(squashed.tolist()):
        end = round(height / 2 * (1 - value))
        picture[min(end, height // 2) : max(end, height // 2), i * bar : (i + 1) * bar - 1] = BAR
    picture[height // 2] = AXIS
    return picture
