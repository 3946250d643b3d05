"""Film: the frames of an episode, compressed in memory, and their encoding as images for a page.

A page shows frame t as the first frame with some tiles replaced. The tiles of one frame are stored in one strip image,
in rows as wide as the frame; if all tiles differ, the strip is the frame itself. So a maze in which only the agent
moves is small, a scrolling view is as large as its frames, and any frame can be shown without the others.
"""

import base64
import hashlib
import io
import zlib
from typing import Any

import numpy as np
from numpy import ndarray
from PIL import Image


class Film:
    """Frames of one shape, compressed; equal frames are stored once."""

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.kept: list[bytes] = []
        self.index: list[int] = []  # index in `kept` of each frame
        self._known: dict[bytes, int] = {}

    def append(self, picture: ndarray) -> None:
        """Append a frame, `[H, W, 3]` uint8."""
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            raise ValueError(f"picture is {picture.dtype} {picture.shape}; accepted: uint8 [H, W, 3]")
        if self.shape and picture.shape != self.shape:
            raise ValueError(f"picture is {picture.shape}; accepted: {self.shape}, the shape of the first frame")
        self.shape = picture.shape
        content = picture.tobytes()
        digest = hashlib.sha1(content, usedforsecurity=False).digest()
        if digest not in self._known:
            self._known[digest] = len(self.kept)
            self.kept.append(zlib.compress(content, 1))
        self.index.append(self._known[digest])

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, frame: int) -> ndarray:
        return self.picture(self.index[frame])

    def picture(self, kept: int) -> ndarray:
        """Return number `kept` of the distinct frames."""
        return np.frombuffer(zlib.decompress(self.kept[kept]), np.uint8).reshape(self.shape)


GRID = 16  # tiles along the longer side
SAMPLE = 8  # frames encoded to estimate the size of a film
LOSSLESS = 101  # a quality
FORMATS = ((512, LOSSLESS), (512, 90), (512, 75), (384, 70), (256, 60), (192, 40))  # longest side, WebP quality


def encode_film(film: Film, max_bytes: int) -> dict[str, Any]:
    """Return a film as JSON data, in the best format with an estimated size of at most `max_bytes`, else the last."""
    for side, quality in FORMATS:
        strips = _Strips(film, side, quality)
        if strips.estimate() <= max_bytes:
            break
    return strips.encode()


class _Strips:
    """Encodes a film with a longest side of at most `side` pixels and WebP quality `quality`."""

    def __init__(self, film: Film, side: int, quality: int) -> None:
        self.film, self.quality = film, quality
        height, width = film.shape[:2]
        scale = min(1.0, side / max(height, width))
        self.size = (max(1, round(width * scale)), max(1, round(height * scale)))
        self.tile = -(-max(self.size) // GRID)
        self.columns, self.rows = (-(-length // self.tile) for length in self.size)
        self.first = self._frame(0)

    def estimate(self) -> float:
        """Estimate the encoded size in bytes from a sample of frames."""
        num = len(self.film.kept)
        sample = np.unique(np.linspace(0, num - 1, min(num, SAMPLE)).astype(int)).tolist()
        return sum(len(self._strip(kept)[0]) for kept in sample) * num / len(sample)

    def encode(self) -> dict[str, Any]:
        """Return width, height and tile side in pixels, the strips, and the strip of each frame."""
        strips = [self._strip(kept) for kept in range(len(self.film.kept))]
        return {
            "width": self.size[0],
            "height": self.size[1],
            "tile": self.tile,
            "columns": self.columns,
            "first": _image(self.first, self.quality),
            "strips": [image for image, _ in strips],
            "tiles": [tiles for _, tiles in strips],
            "frames": self.film.index,
        }

    def _strip(self, kept: int) -> tuple[str, list[int]]:
        """Return the image of the tiles that differ from the first frame, and their indices, row by row."""
        frame = self._frame(kept)
        tiles, first = self._tiles(frame), self._tiles(self.first)
        changed = np.flatnonzero((tiles != first).any((1, 2, 3))).tolist()
        if not changed:
            return "", []
        columns = min(len(changed), self.columns)
        rows = -(-len(changed) // columns)
        sheet = np.zeros((rows * columns, self.tile, self.tile, 3), dtype=np.uint8)
        sheet[: len(changed)] = tiles[changed]
        image = sheet.reshape(rows, columns, self.tile, self.tile, 3).swapaxes(1, 2)
        return _image(image.reshape(rows * self.tile, columns * self.tile, 3), self.quality), changed

    def _frame(self, kept: int) -> ndarray:
        """Return one frame in the encoded size, padded to whole tiles."""
        picture = self.film.picture(kept)
        if self.size != (picture.shape[1], picture.shape[0]):
            picture = np.asarray(Image.fromarray(picture).resize(self.size, Image.Resampling.LANCZOS))
        margin = (self.rows * self.tile - self.size[1], self.columns * self.tile - self.size[0])
        return np.pad(picture, ((0, margin[0]), (0, margin[1]), (0, 0)), mode="edge")

    def _tiles(self, frame: ndarray) -> ndarray:
        """Split a frame into tiles `[tiles, tile, tile, 3]`, row by row."""
        grid = frame.reshape(self.rows, self.tile, self.columns, self.tile, 3).swapaxes(1, 2)
        return grid.reshape(-1, self.tile, self.tile, 3)


def encode_picture(picture: ndarray, side: int) -> str:
    """Return an image as a data URI, with a longest side of at most `side` pixels."""
    image = Image.fromarray(picture)
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return _image(np.asarray(image), 80)


def _image(picture: ndarray, quality: int) -> str:
    file = io.BytesIO()
    options = {"lossless": True, "quality": 50} if quality == LOSSLESS else {"quality": quality}
    Image.fromarray(picture).save(file, "WEBP", method=3, **options)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
