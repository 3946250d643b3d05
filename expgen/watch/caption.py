"""Frames of a video: the picture, who acted and why in one line below it, and the timeline."""

from collections.abc import Iterator

import numpy as np
from numpy import ndarray
from PIL import Image, ImageColor, ImageDraw, ImageFont

from expgen.colors import ROLES
from expgen.watch.recording import Recording

COLORS = {who: ImageColor.getrgb(color) for who, color in ROLES.items()}
GROUND, INK = (20, 23, 27), (235, 238, 242)


def captioned_frames(recording: Recording, width: int) -> Iterator[ndarray]:
    """`[H, width, 3]` uint8 for each step; both sides even, as video codecs like it."""
    height, full_width = recording.film.shape[:2]
    picture_height = round(height * width / full_width)
    strip, band = width // 12, max(4, width // 64)  # heights of the caption and of the timeline
    total = picture_height + strip + band
    timeline = Image.new("RGB", (width, band), GROUND)
    font = ImageFont.load_default(size=strip * 0.42)
    for t, step in enumerate(recording.steps):
        canvas = Image.new("RGB", (width + width % 2, total + total % 2), GROUND)
        picture = Image.fromarray(recording.film[t])
        canvas.paste(picture.resize((width, picture_height), Image.Resampling.LANCZOS), (0, 0))
        draw = ImageDraw.Draw(canvas)
        draw.rectangle((0, picture_height, strip * 0.28, picture_height + strip), COLORS[step.reason.who])
        draw.text((strip * 0.5, picture_height + strip / 2), caption(recording, t), INK, font, anchor="lm")
        left, right = (round(width * edge / len(recording.steps)) for edge in (t, t + 1))
        ImageDraw.Draw(timeline).rectangle((left, 0, max(left, right - 1), band), COLORS[step.reason.who])
        canvas.paste(timeline, (0, total - band))
        yield np.asarray(canvas)


def caption(recording: Recording, t: int) -> str:
    """Step t in one line."""
    step, cast = recording.steps[t], recording.cast
    reason = step.reason
    words = [f"{t + 1}/{len(recording.steps)}", f"{reason.who}: {recording.actions.actions[step.action]}"]
    if reason.who == "ensemble" and cast.vote == "majority":
        words[-1] += f", as member {reason.member}"
    if reason.votes:
        then = "but have acted on this frame" if reason.is_set_aside else f"{cast.quorum} needed"
        words.append(f"{sum(reason.agrees)} of {cast.members} agree, {then}")
    elif cast.members:
        words.append(f"exploring, {reason.lasts} more")
    if t == len(recording.steps) - 1:
        words.append("solved" if recording.solved else "not solved")
    return "  ·  ".join(words)
