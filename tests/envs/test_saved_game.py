"""Parsing of saved games, against bytes written by hand in the documented format."""

import struct

import pytest

from expgen.envs.libenv import PlayerPosition, level_of, move_to_level, player_position, state_offsets


def ints(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def text(content: bytes) -> bytes:
    return ints(len(content)) + content


def generator(content: bytes) -> bytes:
    return ints(1) + text(content)


class Game:
    """The parts of a saved game, in order."""

    def __init__(
        self, name: bytes, level: int, mark: bytes, entities: int = 2, where: tuple = (1.5, 2.5, 9, 7)
    ) -> None:
        self.environment = ints(0) + text(name) + ints(*range(12), 5, 0, 200, 1, 3) + generator(mark + b" of levels")
        self.game = generator(mark + b" of the game")
        self.step = struct.pack("<fii", 0.25, 0, 0)
        x, y, width, height = where
        others = b"\xff" * 124 * (entities - 1)
        player = struct.pack("<ff", x, y) + b"\x00" * 116
        self.contents = ints(-1, 1000, level, *range(9), 63, entities) + player + others + ints(*range(19))
        self.contents += generator(mark + b" of the assets") + ints(width, height) + mark

    @property
    def state(self) -> bytes:
        return self.environment + self.game + self.step + self.contents


GAMES = [
    Game(b"maze", 7, b"a"),
    Game(b"bossfight", 2**31 - 2, b"long " * 50, entities=40, where=(0.5, 3.25, 64, 12)),
    Game(b"", 0, b"", entities=1),
]


@pytest.mark.parametrize(
    ("game", "level", "where"),
    [
        (GAMES[0], 7, (1.5, 2.5, 9, 7)),
        (GAMES[1], 2**31 - 2, (0.5, 3.25, 64, 12)),
        (GAMES[2], 0, (1.5, 2.5, 9, 7)),
    ],
)
def test_level_and_player_position_of_saved_games(game: Game, level: int, where: tuple) -> None:
    assert level_of(game.state) == level
    assert player_position(game.state) == PlayerPosition(*where)


@pytest.mark.parametrize("own", GAMES)
@pytest.mark.parametrize("start", GAMES)
def test_move_to_level_replaces_level_and_keeps_environment(own: Game, start: Game) -> None:
    step = struct.pack("<fii", 10.0, 1, 1)
    assert move_to_level(own.state, start.state, 10.0, True) == own.environment + start.game + step + start.contents


def test_move_to_level_stores_result_of_previous_episode() -> None:
    moved = move_to_level(GAMES[0].state, GAMES[1].state, -1.5, False)
    assert struct.unpack_from("<fii", moved, state_offsets(moved).step) == (-1.5, 1, 0)
    assert level_of(moved) == level_of(GAMES[1].state)


@pytest.mark.parametrize("length", [0, 7, 100])
def test_level_of_rejects_truncated_state(length: int) -> None:
    with pytest.raises(struct.error):
        level_of(GAMES[1].state[:length])
