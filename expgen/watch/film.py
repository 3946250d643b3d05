"""Film: the pictures of an episode, kept small in memory; any of them can be looked at again."""

import hashlib
import zlib

import numpy as np
from numpy import ndarray


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
