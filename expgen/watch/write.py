"""Write a recording as a file: the inspector page, or a video (.gif or .mp4) with caption and timeline."""

import importlib
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray
from PIL import Image, ImageColor, ImageDraw, ImageFont

from expgen.colors import ROLES
from expgen.errors import InputError, check_writable
from expgen.files import write_atomic
from expgen.watch.page import inspector_page
from expgen.watch.record import Recording

COLORS = {who: ImageColor.getrgb(color) for who, color in ROLES.items()}
GROUND, INK = (20, 23, 27), (235, 238, 242)


def captioned_frames(recording: Recording, width: int) -> Iterator[ndarray]:
    """Yield `[H, width, 3]` uint8 for each step; both sides are even, as video codecs require."""
    height, full_width = recording.film.shape[:2]
    picture_height = round(height * width / full_width)
    strip, band = width // 12, max(4, width // 64)  # heights of caption and timeline
    total = picture_height + strip + band
    timeline = Image.new("RGB", (width, band), GROUND)
    size = strip * 0.42  # font size
    full_size = ImageFont.load_default(size)
    for t, step in enumerate(recording.steps):
        canvas = Image.new("RGB", (width + width % 2, total + total % 2), GROUND)
        picture = Image.fromarray(recording.film[t])
        canvas.paste(picture.resize((width, picture_height), Image.Resampling.LANCZOS), (0, 0))
        draw = ImageDraw.Draw(canvas)
        draw.rectangle((0, picture_height, strip * 0.28, picture_height + strip), COLORS[step.reason.who])
        words = caption(recording, t)
        font = ImageFont.load_default(size * min(1, (width - strip) / full_size.getlength(words)))  # shrink to fit
        draw.text((strip * 0.5, picture_height + strip / 2), words, INK, font, anchor="lm")
        left, right = (round(width * edge / len(recording.steps)) for edge in (t, t + 1))
        ImageDraw.Draw(timeline).rectangle((left, 0, max(left, right - 1), band), COLORS[step.reason.who])
        canvas.paste(timeline, (0, total - band))
        yield np.asarray(canvas)


def caption(recording: Recording, t: int) -> str:
    """Describe step t in one line."""
    step, ensemble = recording.steps[t], recording.ensemble
    reason = step.reason
    words = [f"{t + 1}/{len(recording.steps)}", f"{reason.who}: {recording.actions.actions[step.action]}"]
    if reason.who == "ensemble" and ensemble.vote == "majority":
        words[-1] += f", as member {reason.member}"
    if reason.votes:
        condition = "but have acted on this frame" if reason.is_set_aside else f"{ensemble.quorum} needed"
        words.append(f"{sum(reason.agrees)} of {ensemble.members} agree, {condition}")
    elif ensemble.members:
        words.append(f"exploring, {reason.lasts} more")
    if reason.is_hedged:
        words.append("hedged")
    if t == len(recording.steps) - 1:
        words.append("solved" if recording.solved else "not solved")
    return "  ·  ".join(words)


GIF_WIDTH, MP4_WIDTH = 320, 512  # pixels
GIF_COLORS = 64
LAST_FRAME = 1.5  # seconds for which the last frame is shown


def write_gif(recording: Recording, path: Path, fps: int) -> None:
    """Write a GIF that loops."""
    frames = with_shared_palette(
        [Image.fromarray(frame) for frame in captioned_frames(recording, GIF_WIDTH)], GIF_COLORS
    )
    duration = [round(1000 / fps)] * (len(frames) - 1) + [round(1000 * LAST_FRAME)]
    frames[0].save(path, "GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0)


def with_shared_palette(frames: Sequence[Image.Image], colors: int) -> list[Image.Image]:
    """Reduce `frames` to one palette, so that a GIF stores only what changes from frame to frame.

    The palette is that of the middle and the last frame and of the roles' colours.
    """
    width, height = frames[0].size
    sheet = Image.new("RGB", (width, 3 * height))
    sheet.paste(frames[len(frames) // 2], (0, 0))
    sheet.paste(frames[-1], (0, height))
    for index, color in enumerate(ROLES.values()):
        sheet.paste(color, (0, 2 * height + 40 * index, width, 2 * height + 40 * (index + 1)))
    palette = sheet.quantize(colors, dither=Image.Dither.NONE)
    return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]


def write_mp4(recording: Recording, path: Path, fps: int) -> None:
    """Write H.264 in a pixel format that every player supports."""
    frames = captioned_frames(recording, MP4_WIDTH)
    first = last = next(frames)
    settings = {"codec": "libx264", "quality": 7, "macro_block_size": 2, "ffmpeg_log_level": "error"}
    film = find_ffmpeg().write_frames(str(path), (first.shape[1], first.shape[0]), fps=fps, **settings)
    film.send(None)
    for last in chain([first], frames):
        film.send(last)
    for _ in range(round(fps * LAST_FRAME)):
        film.send(last)
    film.close()


def find_ffmpeg() -> Any:
    """Return the module imageio_ffmpeg; raise InputError if it is not installed."""
    try:
        return importlib.import_module("imageio_ffmpeg")
    except ImportError:
        raise InputError(".mp4 needs ffmpeg: pip install 'expgen[video]'; accepted without it: .html, .gif") from None


ENDINGS = (".html", ".gif", ".mp4")


def check_out(path: Path) -> None:
    """Raise InputError if a video or page cannot be written to `path`; called before the episode is played."""
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"--out is {path}; accepted: a file that ends in {', '.join(ENDINGS)}")
    if path.suffix.lower() == ".mp4":
        find_ffmpeg()
    check_writable(path)


def write_recording(recording: Recording, path: Path, fps: int = 8) -> None:
    """Write the inspector (.html) or a video with `fps` steps a second, atomically."""
    check_out(path)
    ending = path.suffix.lower()
    if ending == ".html":
        write_atomic(path, inspector_page([recording]).encode())
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"episode{ending}")
        (write_gif if ending == ".gif" else write_mp4)(recording, file, fps)
        write_atomic(path, file.read_bytes())
