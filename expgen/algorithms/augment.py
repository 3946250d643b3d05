"""The eight image augmentations of DrAC (Raileanu et al. 2021), on batches of images on their device.

Each function takes images `[B, 3, H, W]` float32 in 0..1 and returns new ones. Random numbers come from the generator
only, and none is read on the host. Pixel sizes are for ProcGen's 64 × 64 images and scale with the image.
"""

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Augmentation = Callable[[Tensor, torch.Generator], Tensor]
AugmentationName = Literal[
    "crop", "random-conv", "grayscale", "flip", "rotate", "cutout", "cutout-color", "color-jitter"
]

SIDE = 64  # image side that the sizes below refer to
PAD = 12  # maximal shift of a crop
CUTOUT_SIZE = (7, 21)  # range of the box's height and width
CUTOUT_ROW, CUTOUT_COLUMN = 12, 24  # the box starts at this offset plus its own height and width
LUMA = (0.2989, 0.587, 0.114)  # weights of red, green and blue
JITTER = 0.4  # brightness, contrast and saturation are multiplied by 1 ± 0.4
HUE = 0.5 * 255 / 360  # maximal hue rotation, as a fraction of the circle


def augment(obs: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Apply `augmentation` to `obs` `[…, H, W, 3]` uint8; the result is float32, scaled to 0..255."""
    images = obs.flatten(0, -4).permute(0, 3, 1, 2).float() / 255  # [B, 3, H, W], channels last in memory
    augmented = augmentation(images, generator) * 255
    return augmented.permute(0, 2, 3, 1).contiguous().view(obs.shape)


def crop(x: Tensor, generator: torch.Generator) -> Tensor:
    """Pad by repeating the border, then crop at random: equivalent to a shift with indices clamped to the image."""
    batch, _, height, width = x.shape
    pad_rows, pad_columns = scaled(PAD, height), scaled(PAD, width)
    row = torch.arange(height, device=x.device) + _integers(x, generator, -pad_rows, pad_rows)  # [B, H]
    column = torch.arange(width, device=x.device) + _integers(x, generator, -pad_columns, pad_columns)  # [B, W]
    image = torch.arange(batch, device=x.device)[:, None, None]
    row, column = row.clamp(0, height - 1)[:, :, None], column.clamp(0, width - 1)[:, None, :]
    return x.permute(0, 2, 3, 1)[image, row, column].permute(0, 3, 1, 2)


def random_conv(x: Tensor, generator: torch.Generator) -> Tensor:
    """Convolve each image with its own random 3 × 3 kernel, Xavier-normal, no bias; the result is not clipped."""
    batch, channels, height, width = x.shape
    std = (2 / (9 * channels + 9 * channels)) ** 0.5
    weight = std * torch.randn(batch, 3, 3, channels, channels, generator=generator, device=x.device)
    padded = F.pad(x, (1, 1, 1, 1))
    shifts = ((i, j, padded[:, :, i : i + height, j : j + width]) for i in range(3) for j in range(3))
    return torch.stack([torch.einsum("boc,bchw->bohw", weight[:, i, j], part) for i, j, part in shifts]).sum(0)


def grayscale(x: Tensor, generator: torch.Generator) -> Tensor:
    """Replace all three channels by the luma."""
    weight = x.new_tensor(LUMA).view(1, 3, 1, 1)
    return (x * weight).sum(1, keepdim=True).repeat(1, 3, 1, 1)


def flip(x: Tensor, generator: torch.Generator) -> Tensor:
    """Flip each image top to bottom (the authors' axis) with probability ½."""
    return torch.where(_uniform(x, generator, 0, 1) < 0.5, x.flip(2), x)


def rotate(x: Tensor, generator: torch.Generator) -> Tensor:
    """Rotate each (square) image by a random multiple of 90 degrees."""
    turns = _integers(x, generator, 0, 3).view(-1, 1, 1, 1)
    for turn in (1, 2, 3):
        x = torch.where(turns >= turn, x.rot90(1, (2, 3)), x)
    return x


def cutout(x: Tensor, generator: torch.Generator) -> Tensor:
    """Paint a random box black."""
    return torch.where(_box(x, generator), 0.0, x)


def cutout_color(x: Tensor, generator: torch.Generator) -> Tensor:
    """Paint a random box in a random colour in 0..1 (after its first call the authors' code paints in 0..254)."""
    box = _box(x, generator)
    color = torch.randint(255, (len(x), 3, 1, 1), generator=generator, device=x.device) / 255
    return torch.where(box, color, x)


def color_jitter(x: Tensor, generator: torch.Generator) -> Tensor:
    """Change brightness, contrast, saturation and hue of each image at random.

    Contrast is changed before or after the others, chosen at random for the whole batch.
    """
    brightness, contrast, saturation = (_uniform(x, generator, 1 - JITTER, 1 + JITTER) for _ in range(3))
    hue = _uniform(x, generator, -HUE, HUE)
    contrast_first = torch.rand((), generator=generator, device=x.device) < 0.5
    x = torch.where(contrast_first, _with_contrast(x, contrast), x)
    h, s, v = rgb_to_hsv(x).split(1, 1)
    x = hsv_to_rgb(torch.cat([(h + hue) % 1, (s * saturation).clamp(0, 1), (v * brightness).clamp(0, 1)], 1))
    return torch.where(contrast_first, x, _with_contrast(x, contrast))


AUGMENTATIONS: Mapping[str, Augmentation] = {  # in the bandit's order
    "crop": crop,
    "random-conv": random_conv,
    "grayscale": grayscale,
    "flip": flip,
    "rotate": rotate,
    "cutout": cutout,
    "cutout-color": cutout_color,
    "color-jitter": color_jitter,
}


def scaled(pixels: int, side: int) -> int:
    """Scale a size from 64-pixel images to images of `side` pixels; at least 1."""
    return max(1, round(pixels * side / SIDE))


def rgb_to_hsv(x: Tensor) -> Tensor:
    """Convert `[B, 3, H, W]` in 0..1 to hue, saturation and value, each in 0..1."""
    r, g, b = x.unbind(1)
    value, low = x.amax(1), x.amin(1)
    spread = value - low
    safe = torch.where(spread > 0, spread, 1.0)
    sector = torch.where(value == r, (g - b) / safe, torch.where(value == g, (b - r) / safe + 2, (r - g) / safe + 4))
    saturation = spread / torch.where(value > 0, value, 1.0)
    return torch.stack([(sector / 6) % 1, saturation, value], 1)


def hsv_to_rgb(x: Tensor) -> Tensor:
    """Invert `rgb_to_hsv`: red, green, blue are v − v s max(0, min(k, 4 − k, 1)), k = (n + 6h) mod 6, n = 5, 3, 1."""
    hue, saturation, value = x.unbind(1)

    def channel(n: int) -> Tensor:
        k = (n + 6 * hue) % 6
        return value - value * saturation * torch.minimum(k, 4 - k).clamp(0, 1)

    return torch.stack([channel(5), channel(3), channel(1)], 1)


def _with_contrast(x: Tensor, factor: Tensor) -> Tensor:
    mean = x.mean((2, 3), keepdim=True)
    return ((x - mean) * factor + mean).clamp(0, 1)


def _box(x: Tensor, generator: torch.Generator) -> Tensor:
    """Return the mask `[B, 1, H, W]` of a random box per image: rows [r + h, r + 2h) and columns [c + w, c + 2w)."""

    def inside(side: int, begin: int) -> Tensor:
        low, high = (scaled(size, side) for size in CUTOUT_SIZE)
        size = _integers(x, generator, low, high)  # [B, 1]
        offset = torch.arange(side, device=x.device) - scaled(begin, side)
        return (offset >= size) & (offset < 2 * size)  # [B, side]

    rows, columns = inside(x.shape[2], CUTOUT_ROW), inside(x.shape[3], CUTOUT_COLUMN)
    return (rows[:, :, None] & columns[:, None, :]).unsqueeze(1)


def _integers(x: Tensor, generator: torch.Generator, low: int, high: int) -> Tensor:
    """Draw an integer in low..high for each image, `[B, 1]`."""
    return torch.randint(low, high + 1, (len(x), 1), generator=generator, device=x.device)


def _uniform(x: Tensor, generator: torch.Generator, low: float, high: float) -> Tensor:
    """Draw a number in [low, high) for each image, `[B, 1, 1, 1]`."""
    return low + (high - low) * torch.rand(len(x), 1, 1, 1, generator=generator, device=x.device)
