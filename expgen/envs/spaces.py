"""Gymnasium spaces as our networks see them: pictures, vectors, and a number of actions.

A picture is a uint8 Box with the axes height, width and channel; a leading channel axis is moved to the end, a missing
one is added. A vector is a Box of one axis, as float32. A Discrete observation becomes a one-hot vector. All other
spaces are rejected: a Dict or Tuple can be flattened in many ways, so the user chooses one with a wrapper.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy import ndarray

from expgen.errors import InputError

CHANNELS = (1, 3, 4)  # usual channel counts: grey, RGB, RGBA or four stacked grey frames


@dataclass(frozen=True)
class ObsLayout:
    """How an observation of the environment is stored in our buffer."""

    shape: tuple[int, ...]
    dtype: str  # "uint8" or "float32"
    discrete_start: int | None  # smallest value of a Discrete space; None for a Box
    channel: Literal["last", "first", "none"] = "last"  # channel axis of the environment's pictures; ours is last

    def fill(self, buffer: ndarray, row: Any, value: Any) -> None:
        """Write `value` to `buffer[row]`: one observation and one row, or equally many of both."""
        if self.channel == "first":
            buffer[row] = np.moveaxis(value, -3, -1)
        elif self.channel == "none":
            buffer[row] = np.asarray(value)[..., None]
        elif self.discrete_start is None:
            buffer[row] = value
        else:
            index = np.asarray(value) - self.discrete_start
            if (index < 0).any():  # NumPy would count from the end
                raise IndexError(f"observation is {value}; accepted: {self.discrete_start} or more")
            buffer[row] = 0
            buffer[row, index] = 1


def obs_layout(name: str, space: Any) -> ObsLayout:
    """Return the layout of a Gymnasium observation space; raise InputError if it is not supported."""
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
        raise InputError(f"--env is {name!r} with pictures {shape}, whose channel axis is ambiguous; {accepted}")
    return ObsLayout(shape, "uint8", None) if axis == 2 else ObsLayout((*shape[1:], shape[0]), "uint8", None, "first")


def _channel_axis(first: int, middle: int, last: int) -> int | None:
    """Guess the channel axis: the one beside two equal axes, else one with a usual channel count, else the smaller."""
    if first == middle:
        return 2
    if middle == last:
        return 0 if first in CHANNELS or last not in CHANNELS else None  # (8, 4, 4): 8 channels, or 8 × 4 pixels?
    if last in CHANNELS:
        return 2
    if first in CHANNELS:
        return 0
    if first == last or middle < min(first, last):
        return None
    return 0 if first < last else 2


def action_range(name: str, space: Any) -> range:
    """Return the actions of a Gymnasium space, which may start at any number; raise InputError if not Discrete."""
    from gymnasium.spaces import Discrete

    if not isinstance(space, Discrete):
        raise InputError(f"--env is {name!r} with actions {_one_line(space)}; accepted: Discrete actions")
    return range(int(space.start), int(space.start) + int(space.n))


def _one_line(space: Any) -> str:
    return " ".join(str(space).split())[:80]
