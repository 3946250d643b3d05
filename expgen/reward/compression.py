"""Lossless compression of frames for checkpoints, by the small differences between consecutive frames."""

import zlib
from collections.abc import Mapping

import numpy as np
from numpy import ndarray


def compress_frames(frames: ndarray) -> dict[str, ndarray]:
    """Compress `frames` `[K, …]` into plain arrays; integers are stored as differences from the previous frame."""
    body = np.diff(frames, axis=0, prepend=frames[:1] * 0) if frames.dtype.kind in "iu" else frames
    content = np.frombuffer(zlib.compress(np.ascontiguousarray(body).tobytes(), 1), dtype=np.uint8)
    return {"frames": content, "shape": np.array(frames.shape), "like": np.zeros(1, dtype=frames.dtype)}


def decompress_frames(state: Mapping[str, ndarray]) -> ndarray:
    """Invert `compress_frames`."""
    dtype = state["like"].dtype
    body = np.frombuffer(zlib.decompress(state["frames"].tobytes()), dtype=dtype).reshape(state["shape"])
    return np.cumsum(body, axis=0, dtype=dtype) if dtype.kind in "iu" else body.copy()
