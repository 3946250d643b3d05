"""A recording as a .gif (Pillow) or an .mp4 (the ffmpeg that imageio-ffmpeg brings along)."""

import importlib
from pathlib import Path
from typing import Any

from PIL import Image

from expgen.errors import InputError
from expgen.watch.caption import captioned_frames
from expgen.watch.recording import Recording

GIF_WIDTH, MP4_WIDTH = 320, 512  # pixels
LINGER = 1.5  # seconds that the last frame is shown


def write_gif(recording: Recording, path: Path, fps: int) -> None:
    """Loops for ever."""
    frames = [Image.fromarray(frame) for frame in captioned_frames(recording, GIF_WIDTH)]
    duration = [round(1000 / fps)] * (len(frames) - 1) + [round(1000 * LINGER)]
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)


def write_mp4(recording: Recording, path: Path, fps: int) -> None:
    """H.264 in the colours that every player knows."""
    film: Any = None
    frame = None
    for frame in captioned_frames(recording, MP4_WIDTH):
        if film is None:
            size = frame.shape[1], frame.shape[0]
            settings = {"codec": "libx264", "quality": 7, "macro_block_size": 2, "ffmpeg_log_level": "error"}
            film = find_ffmpeg().write_frames(str(path), size, fps=fps, **settings)
            film.send(None)
        film.send(frame)
    for _ in range(round(fps * LINGER)):
        film.send(frame)
    film.close()


def find_ffmpeg() -> Any:
    """The package that brings ffmpeg; an InputError where it is missing."""
    try:
        return importlib.import_module("imageio_ffmpeg")
    except ImportError:
        raise InputError(".mp4 needs ffmpeg: pip install 'expgen[video]'; accepted without it: .html, .gif") from None
