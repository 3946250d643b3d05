"""Gymnasium's spaces as our networks see them: pictures, vectors, and a number of actions.

A picture is a uint8 Box of three axes and keeps its shape. A vector is a Box of one axis, as float32. A Discrete
observation (a cell number, a state of a table) becomes a one-hot vector. Everything else is refused: a Dict or Tuple
has no single best flattening, so the user picks one with a Gymnasium wrapper.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from expgen.errors import InputError


@dataclass(frozen=True)
class ObsLayout:
    """How one observation lies in the buffer."""

    shape: tuple[int, ...]
    dtype: str  # "uint8" or "float32"
    first_value: int | None  # of a Discrete space; None for a Box

    def fill(self, buffer: ndarray, row: Any, value: Any) -> None:
        """Write observations `value` to `buffer[row]`: one of each, or as many rows as values."""
        if self.first_value is None:
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
    if isinstance(space, Box) and len(space.shape) == 3 and space.dtype == np.uint8:
        return ObsLayout(space.shape, "uint8", None)
    if isinstance(space, Box) and len(space.shape) == 1:
        return ObsLayout(space.shape, "float32", None)
    raise InputError(
        f"--env is {name!r} with observations {_one_line(space)}; accepted: a uint8 Box of three axes (a picture), "
        "a Box of one axis (a vector), or Discrete"
    )


def action_range(name: str, space: Any) -> range:
    """The actions of a Gymnasium action space, or an InputError; ours count from 0, theirs need not."""
    from gymnasium.spaces import Discrete

    if not isinstance(space, Discrete):
        raise InputError(f"--env is {name!r} with actions {_one_line(space)}; accepted: Discrete actions")
    return range(int(space.start), int(space.start) + int(space.n))


def _one_line(space: Any) -> str:
    text = " ".join(str(space).split())
    return text if len(text) <= 80 else text[:77] + "..."
