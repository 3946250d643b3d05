"""Packed frames come back bit for bit, and take few bytes where frames hardly differ."""

import numpy as np
import pytest

from expgen.reward.compression import compress_frames, decompress_frames


@pytest.mark.parametrize("kind", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_packed_frames_unpack_to_themselves(kind: str, count: int) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, size=(count, 3, 5, 2)).astype(kind)
    back = decompress_frames(compress_frames(frames))
    assert back.dtype == frames.dtype and np.array_equal(back, frames)


def test_an_episode_of_a_still_picture_is_small() -> None:
    rng = np.random.default_rng(0)
    frames = np.repeat(rng.integers(0, 2295, size=(1, 441, 3)).astype(np.int16), 400, axis=0)
    frames[np.arange(400), np.arange(400) % 441] += 7  # something moves
    assert compress_frames(frames)["frames"].nbytes < frames.nbytes / 20
