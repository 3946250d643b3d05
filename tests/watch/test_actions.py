"""Names of actions, and their rows in the inspector."""

from expgen.envs.vec_env import EnvSpec
from expgen.watch.actions import PROCGEN_ACTIONS, action_rows


def spec(name: str, num_actions: int) -> EnvSpec:
    return EnvSpec(name, (64, 64, 3), "uint8", num_actions)


def test_minimaze_has_a_row_per_direction_and_one_for_no_op() -> None:
    rows = action_rows(spec("minimaze", 5))
    assert rows.actions == ("stay", "left", "right", "up", "down")
    assert [rows.rows[row] for row in rows.row_of] == ["stay", "left", "right", "up", "down"]
    assert len(rows.rows) == 5


def test_procgen_maze_shows_diagonals_as_sideways_and_keys_as_other() -> None:
    rows = action_rows(spec("procgen:maze", 15))
    row = {action: rows.rows[at] for action, at in zip(rows.actions, rows.row_of)}
    assert row["left + up"] == row["left"] == row["left + down"] == "left"
    assert row["up"] == "up" and row["stay"] == row["key E"] == "other"
    assert rows.rows == ("up", "right", "down", "left", "other")


def test_by_action_gives_every_action_a_row() -> None:
    rows = action_rows(spec("procgen:maze", 15), by_action=True)
    assert rows.rows == PROCGEN_ACTIONS and rows.row_of == tuple(range(15))


def test_actions_are_numbered_in_unknown_environments_and_named_in_envpool_procgen() -> None:
    assert action_rows(spec("gymnasium:Fifteen-v0", 15)).rows[0] == "action 0"
    assert action_rows(spec("gymnasium:CartPole-v9", 3)).rows[0] == "action 0"  # not the number of actions that we know
    assert action_rows(spec("envpool:MazeEasy-v0", 15)).actions == PROCGEN_ACTIONS


def test_gymnasium_games_have_documented_action_names() -> None:
    assert action_rows(spec("gymnasium:CartPole-v1", 2)).rows == ("push left", "push right")
    assert action_rows(spec("gymnasium:FrozenLake8x8-v1", 4)).rows[0] == "action 0"
    assert action_rows(spec("gymnasium:FrozenLake-v1", 4)).rows == ("left", "down", "right", "up")


def test_action_names_of_the_environment_take_precedence() -> None:
    assert action_rows(spec("gymnasium:CartPole-v1", 2), own_names=("west", "east")).rows == ("west", "east")


def test_key_d_is_called_fire_in_shooting_games() -> None:
    for name in ("procgen:starpilot", "envpool:StarpilotEasy-v0"):
        assert action_rows(spec(name, 15)).actions[9] == "fire"
    assert action_rows(spec("procgen:maze", 15)).actions[9] == "key D"
