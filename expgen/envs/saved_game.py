"""A ProcGen game saved as bytes: just enough of its layout to start a chosen level in a running environment.

Little-endian, as ProcGen 0.10.7 writes it: format version; name; 12 options; grid step; first level and end of the
level range; game type; game number; level generator; game generator; reward; done; level complete; action; time limit;
level; and then the level's contents. Strings and generators carry their length in front.
"""

import struct
from typing import NamedTuple

INT = struct.Struct("<i")
STEP = struct.Struct("<fii")  # reward, done, level complete


class Layout(NamedTuple):
    """Byte offsets in one saved game."""

    game: int  # the game generator: everything before it belongs to the environment rather than to the level
    step: int  # reward, done and level complete of the last step
    level: int  # seed of the level being played


def layout(state: bytes) -> Layout:
    """Where things are in `state`."""
    level_generator = 8 + _int(state, 4) + 4 * (12 + 1 + 2 + 2)
    game = _after_generator(state, level_generator)
    step = _after_generator(state, game)
    return Layout(game, step, step + STEP.size + 8)


def _int(state: bytes, offset: int) -> int:
    return int(INT.unpack_from(state, offset)[0])


def _after_generator(state: bytes, offset: int) -> int:
    return offset + 8 + _int(state, offset + 4)  # whether it is seeded, the length of its text, the text


def level_of(state: bytes) -> int:
    """Seed of the level a saved game is in."""
    return _int(state, layout(state).level)


def enter(own: bytes, start: bytes, reward: float, solved: bool) -> bytes:
    """The environment saved as `own`, moved to the beginning of the level saved as `start`.

    It keeps its level range and its level generator, so the next levels it draws are those it would have drawn; the
    step that brought it here paid `reward` and ended an episode that was `solved` or not.
    """
    mine, theirs = layout(own), layout(start)
    step = STEP.pack(reward, 1, solved)
    return own[: mine.game] + start[theirs.game : theirs.step] + step + start[theirs.step + STEP.size :]
