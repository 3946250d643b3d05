"""A ProcGen game saved as bytes: just enough of its layout to start a chosen level in a running environment.

Little-endian, as ProcGen 0.10.7 writes it: format version; name; 12 options; grid step; first level and end of the
level range; game type; game number; level generator; game generator; reward; done; level complete; action; time limit;
level; nine numbers; and then the level's contents: number of cells; number of entities; the entities; 19 numbers; a
generator; width and height in cells; and more. Strings and generators carry their length in front.
"""

import struct
from typing import NamedTuple

INT = struct.Struct("<i")
POINT = struct.Struct("<ff")  # x to the right, y upwards
SIZE = struct.Struct("<ii")
ENTITY_BYTES = 4 * 31  # position first; the player is the first entity of every game
STEP = struct.Struct("<fii")  # reward, done, level complete


class Layout(NamedTuple):
    """Byte offsets in one saved game."""

    game: int  # the game generator: everything before it belongs to the environment rather than to the level
    step: int  # reward, done and level complete of the last step
    level: int  # seed of the level being played


class Whereabouts(NamedTuple):
    """Where the player is in its world, in cells; the centre of the lower left one is at 0.5, 0.5."""

    x: float
    y: float
    width: int
    height: int


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


def whereabouts_of(state: bytes) -> Whereabouts:
    """Where the player of a saved game is."""
    num_entities = layout(state).level + 4 * 11
    player = num_entities + 4
    after_entities = player + ENTITY_BYTES * _int(state, num_entities)
    size = _after_generator(state, after_entities + 4 * 19)
    return Whereabouts(*POINT.unpack_from(state, player), *SIZE.unpack_from(state, size))


def enter(own: bytes, start: bytes, reward: float, solved: bool) -> bytes:
    """The environment saved as `own`, moved to the beginning of the level saved as `start`.

    It keeps its level range and its level generator, so the next levels it draws are those it would have drawn; the
    step that brought it here paid `reward` and ended an episode that was `solved` or not.
    """
    mine, theirs = layout(own), layout(start)
    step = STEP.pack(reward, 1, solved)
    return own[: mine.game] + start[theirs.game : theirs.step] + step + start[theirs.step + STEP.size :]
