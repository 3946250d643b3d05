"""Gymnasium's spaces as our networks see them: pictures, vectors, and a number of actions.

A picture is a uint8 Box: height, width and channel, also with the channel first, which is then moved, or without one. A
vector is a Box of one axis, as float32. A Discrete observation (a cell number, a state of a table) becomes a one-hot
vector. Everything else is refused: a Dict or Tuple has no single best flattening, so the user picks one with a wrapper.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from expgen.errors import InputError

CHANNELS = (1, 3, 4)  # of grey pictures, in colour, and with transparency or of four grey frames


@dataclass(frozen=True)
class ObsLayout:
    """How one observation lies in the buffer."""

    shape: tuple[int, ...]
    dtype: str  # "uint8" or "float32"
    first_value: int | None  # of a Discrete space; None for a Box
    channel: Literal["last", "first", "none"] = "last"  # where the environment has that of a picture; ours is last

    def fill(self, buffer: ndarray, row: Any, value: Any) -> None:
        """Write observations `value` to `buffer[row]`: one of each, or as many rows as values."""
        if self.channel == "first":
            buffer[row] = np.moveaxis(value, -3, -1)
        elif self.channel == "none":
            buffer[row] = np.asarray(value)[..., None]
        elif self.first_value is None:
            buffer[row] = value
        else:
            index = np.asarray(value) - self.first_value
            if (index < 0).any():  # numpy would count from the end
                raise IndexError(f"observation is {value}; accepted: {self.first_value} or more")
            buffer[row] = 0
            buffer[row, index] = 1


def obs_layout(name: str, space: Any) -> ObsLayout:
    """The layout of a Gymnasium observation space, or an InputError."""
    from gymnasium.spaces import Box, Discrete

    if isinstance(space, Discrete):
        return ObsLayout((int(space.n),), "float32", int(space.start))
    if isinstance(space, Box) and len(space.shape) in (2, 3) and space.dtype == np.uint8:
        return _picture_layout(name, space.shape)
    if isinstance(space, Box) and len(space.shape) == 1:
        return ObsLayout(space.shape, "float32", None)
    raise InputError(
        f"--env is {name!r} with observations {_one_line(space)}; accepted: a uint8 Box of 2 or 3 axes (a picture), "
        "a Box of one axis (a vector), or Discrete"
    )


def _picture_layout(name: str, shape: tuple[int, ...]) -> ObsLayout:
    if len(shape) == 2:
        return ObsLayout((*shape, 1), "uint8", None, "none")
    axis = _channel_axis(*shape)
    if axis is None:
        accepted = "accepted: height, width, channel; gymnasium.wrappers:TransformObservation can move an axis"
        raise InputError(f"--env is {name!r} with pictures {shape}, any axis of which may be the channel; {accepted}")
    return ObsLayout(shape, "uint8", None) if axis == 2 else ObsLayout((*shape[1:], shape[0]), "uint8", None, "first")


def _channel_axis(first: int, middle: int, last: int) -> int | None:
    """The axis beside two equal ones, else one with as many entries as pictures have channels, else the smallest."""
    if first == middle:
        return 2
    if middle == last:
        return 0 if first in CHANNELS or last not in CHANNELS else None  # (8, 4, 4): 8 planes, or 8 × 4 pixels?
    for axis, size in ((2, last), (0, first)):
        if size in CHANNELS:
            return axis
    return None if first == last or middle < min(first, last) else 0 if first < last else 2


def action_range(name: str, space: Any) -> range:
    """The actions of a Gymnasium action space, or an InputError; ours count from 0, theirs need not."""
    from gymnasium.spaces import Discrete

    if not isinstance(space, Discrete):
        raise InputError(f"--env is {name!r} with actions {_one_line(space)}; accepted: Discrete actions")
    return range(int(space.start), int(space.start) + int(space.n))


def _one_line(space: Any) -> str:
    text = " ".join(str(space).split())
    return text if len(text) <= 80 else text[:77] + "..."
