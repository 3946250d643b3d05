"""Frames of an episode as few bytes: they differ by little from one to the next, so differences compress well."""

import zlib
from collections.abc import Mapping

import numpy as np
from numpy import ndarray


def packed(frames: ndarray) -> dict[str, ndarray]:
    """`frames` `[K, …]` as plain arrays, losslessly; whole numbers as differences from the frame before."""
    body = np.diff(frames, axis=0, prepend=frames[:1] * 0) if frames.dtype.kind in "iu" else frames
    content = np.frombuffer(zlib.compress(np.ascontiguousarray(body).tobytes(), 1), dtype=np.uint8)
    return {"frames": content, "shape": np.array(frames.shape), "like": np.zeros(1, dtype=frames.dtype)}


def unpacked(state: Mapping[str, ndarray]) -> ndarray:
    """The inverse of `packed`."""
    kind = state["like"].dtype
    body = np.frombuffer(zlib.decompress(state["frames"].tobytes()), dtype=kind).reshape(state["shape"])
    return np.cumsum(body, axis=0, dtype=kind) if kind.kind in "iu" else body.copy()
