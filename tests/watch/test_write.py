"""Video files can be read again, and unknown file endings are rejected."""

from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image

from expgen.errors import InputError
from expgen.watch.record import Recording
from expgen.watch.write import captioned_frames, write_recording


def frame_of(gif: Image.Image, t: int) -> Image.Image:
    gif.seek(t)
    return gif.convert("RGB")


def test_gif_has_a_frame_per_distinct_step(mixed: Recording, tmp_path: Path) -> None:
    write_recording(mixed, tmp_path / "new" / "episode.gif", fps=10)
    with Image.open(tmp_path / "new" / "episode.gif") as gif:
        assert gif.n_frames == len(mixed.steps) and gif.size[0] == 320
        assert gif.info["duration"] == 100 and gif.info["loop"] == 0
        colors = {color for t in range(gif.n_frames) for _, color in frame_of(gif, t).getcolors(2**24)}
        assert 2 < len(colors) <= 64  # one palette for all frames


def test_mp4_has_all_steps_and_holds_the_last_frame(mixed: Recording, tmp_path: Path) -> None:
    write_recording(mixed, tmp_path / "episode.mp4", fps=10)
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(tmp_path / "episode.mp4")
    assert frames == len(mixed.steps) + 15 and seconds == pytest.approx(frames / 10, abs=0.2)
    reader = imageio_ffmpeg.read_frames(tmp_path / "episode.mp4")
    width, height = next(reader)["size"]
    first = np.frombuffer(next(reader), np.uint8).reshape(height, width, 3)
    reader.close()
    expected = next(captioned_frames(mixed, 512))
    assert np.abs(first.astype(int) - expected).mean() < 6  # the codec is lossy


def test_unknown_file_endings_are_rejected(mixed: Recording, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"accepted: a file that ends in .html, .gif, .mp4"):
        write_recording(mixed, tmp_path / "episode.avi")
