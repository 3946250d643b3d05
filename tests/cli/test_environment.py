"""GAME and --env."""

import pytest

from expgen.cli.flags import env_name
from expgen.errors import InputError


@pytest.mark.parametrize(
    ("game", "env", "name"),
    [
        (None, None, None),
        ("maze", None, "procgen:maze"),
        ("maze", "procgen", "procgen:maze"),
        (None, "procgen:maze", "procgen:maze"),
        (None, "minimaze", "minimaze"),
        (None, "gymnasium:CartPole-v1", "gymnasium:CartPole-v1"),
        ("CartPole-v1", "gymnasium", "gymnasium:CartPole-v1"),
        ("Pong-v5", "envpool", "envpool:Pong-v5"),
        ("minimaze", None, "minimaze"),
        (None, "maze", "procgen:maze"),
        ("CartPole-v1", None, "gymnasium:CartPole-v1"),
        (None, "ALE/Pong-v5", "gymnasium:ALE/Pong-v5"),
        (None, "my_module:Mine-v0", "gymnasium:my_module:Mine-v0"),
    ],
)
def test_game_and_env_flags_name_the_environment(game: str | None, env: str | None, name: str | None) -> None:
    assert env_name(game, env) == name


@pytest.mark.parametrize(
    ("game", "env", "message"),
    [
        ("mazes", None, "GAME is 'mazes'; accepted: bigfish, .*starpilot, minimaze"),
        (None, "procgen", "--env is 'procgen'; accepted with a GAME: bigfish"),
        (None, "procgen:", "GAME is ''; accepted: bigfish"),
        (None, "procgen:pong", "GAME is 'pong'; accepted: bigfish"),
        (None, "atari", "--env is 'atari'; accepted: minimaze, procgen:GAME, gymnasium:ID, envpool:ID"),
        ("maze", "procgen:heist", "GAME is 'maze' but --env is 'procgen:heist'"),
        ("maze", "minimaze", "GAME is 'maze' but --env is 'minimaze'; accepted: one of them"),
        (None, "gymnasium", "--env is 'gymnasium'; accepted: .*gymnasium:ID"),
        (None, "envpool:", "--env is 'envpool:'; accepted: .*envpool:ID"),
    ],
)
def test_unknown_game_or_env_is_rejected(game: str | None, env: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        env_name(game, env)
