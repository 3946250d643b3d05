"""Film: the pictures of an episode, kept small in memory, and as images for a page.

On a page frame t is the first frame with some tiles replaced. The tiles of one frame lie side by side in one strip
image, in rows as wide as the frame; where all of them differ the strip is the frame itself. So a maze in which only the
agent moves costs little, a view that scrolls costs what its frames cost, and any frame can be shown by itself.
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
    """Pictures of one shape; equal ones are kept once, each compressed."""

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.kept: list[bytes] = []
        self.index: list[int] = []  # of each frame's picture in `kept`
        self._known: dict[bytes, int] = {}

    def append(self, picture: ndarray) -> None:
        """Take one more picture, `[H, W, 3]` uint8."""
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
            raise ValueError(f"picture is {picture.dtype} {picture.shape}; accepted: uint8 [H, W, 3]")
        if self.shape and picture.shape != self.shape:
            raise ValueError(f"picture is {picture.shape}; accepted: {self.shape}, as the first")
        self.shape = picture.shape
        content = picture.tobytes()
        name = hashlib.sha1(content, usedforsecurity=False).digest()
        if name not in self._known:
            self._known[name] = len(self.kept)
            self.kept.append(zlib.compress(content, 1))
        self.index.append(self._known[name])

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, frame: int) -> ndarray:
        return self.picture(self.index[frame])

    def picture(self, kept: int) -> ndarray:
        """Picture number `kept` of those that differ."""
        return np.frombuffer(zlib.decompress(self.kept[kept]), np.uint8).reshape(self.shape)


GRID = 16  # tiles along the longer side
SAMPLE = 8  # frames encoded to see what a quality costs
LOSSLESS = 101  # a quality
LOOKS = ((512, LOSSLESS), (512, 90), (512, 75), (384, 70), (256, 60), (192, 40))  # longer side at most, WebP's quality


def encode_film(film: Film, most_bytes: int) -> dict[str, Any]:
    """A film as JSON: the best look whose images are likely to stay within `most_bytes` of text."""
    strips = next((made for look in LOOKS if (made := _Strips(film, *look)).estimate() <= most_bytes), None)
    return (strips or _Strips(film, *LOOKS[-1])).encode()


class _Strips:
    """One film in one look: its longer side of at most `side` pixels, and WebP's `quality`."""

    def __init__(self, film: Film, side: int, quality: int) -> None:
        self.film, self.quality = film, quality
        height, width = film.shape[:2]
        scale = min(1.0, side / max(height, width))
        self.size = (max(1, round(width * scale)), max(1, round(height * scale)))
        self.tile = -(-max(self.size) // GRID)
        self.columns, self.rows = (-(-length // self.tile) for length in self.size)
        self.first = self._frame(0)

    def estimate(self) -> float:
        """Bytes of text, by a few frames."""
        num = len(self.film.kept)
        sample = np.unique(np.linspace(0, num - 1, min(num, SAMPLE)).astype(int)).tolist()
        return sum(len(self._strip(kept)[0]) for kept in sample) * num / len(sample)

    def encode(self) -> dict[str, Any]:
        """Width and height in pixels, side of a tile, the strips, and which strip each frame shows."""
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
        """The image of the tiles that differ from the first frame, and which they are, row by row."""
        frame = self._frame(kept)
        cut, first = self._tiles(frame), self._tiles(self.first)
        changed = np.flatnonzero((cut != first).any((1, 2, 3))).tolist()
        if not changed:
            return "", []
        columns = min(len(changed), self.columns)
        rows = -(-len(changed) // columns)
        sheet = np.zeros((rows * columns, self.tile, self.tile, 3), dtype=np.uint8)
        sheet[: len(changed)] = cut[changed]
        image = sheet.reshape(rows, columns, self.tile, self.tile, 3).swapaxes(1, 2)
        return _image(image.reshape(rows * self.tile, columns * self.tile, 3), self.quality), changed

    def _frame(self, kept: int) -> ndarray:
        """One picture in this look's size, padded to whole tiles."""
        picture = self.film.picture(kept)
        if self.size != (picture.shape[1], picture.shape[0]):
            picture = np.asarray(Image.fromarray(picture).resize(self.size, Image.Resampling.LANCZOS))
        margin = (self.rows * self.tile - self.size[1], self.columns * self.tile - self.size[0])
        return np.pad(picture, ((0, margin[0]), (0, margin[1]), (0, 0)), mode="edge")

    def _tiles(self, frame: ndarray) -> ndarray:
        """`[tiles, tile, tile, 3]`, row by row."""
        cut = frame.reshape(self.rows, self.tile, self.columns, self.tile, 3).swapaxes(1, 2)
        return cut.reshape(-1, self.tile, self.tile, 3)


def encode_picture(picture: ndarray, side: int) -> str:
    """One picture as a data URI, its longer side at most `side` pixels."""
    image = Image.fromarray(picture)
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return _image(np.asarray(image), 80)


def _image(picture: ndarray, quality: int) -> str:
    file = io.BytesIO()
    how = {"lossless": True, "quality": 50} if quality == LOSSLESS else {"quality": quality}
    Image.fromarray(picture).save(file, "WEBP", method=3, **how)
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
