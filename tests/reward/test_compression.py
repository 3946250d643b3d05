"""Frame compression is lossless, and effective for similar frames."""

import numpy as np
import pytest

from expgen.reward.compression import compress_frames, decompress_frames


@pytest.mark.parametrize("kind", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_compressed_frames_round_trip(kind: str, count: int) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, size=(count, 3, 5, 2)).astype(kind)
    back = decompress_frames(compress_frames(frames))
    assert back.dtype == frames.dtype and np.array_equal(back, frames)


def test_identical_frames_compress_well() -> None:
    rng = np.random.default_rng(0)
    frames = np.repeat(rng.integers(0, 2295, size=(1, 441, 3)).astype(np.int16), 400, axis=0)
    frames[np.arange(400), np.arange(400) % 441] += 7  # one moving pixel
    assert compress_frames(frames)["frames"].nbytes < frames.nbytes / 20
