"""Names of actions, and the rows their votes are shown in."""

from expgen.envs.vec_env import EnvSpec
from expgen.watch.actions import PROCGEN_ACTIONS, action_rows


def spec(name: str, num_actions: int) -> EnvSpec:
    return EnvSpec(name, (64, 64, 3), "uint8", num_actions)


def test_minimaze_has_a_row_for_each_direction_and_one_for_standing_still() -> None:
    rows = action_rows(spec("minimaze", 5))
    assert rows.actions == ("stay", "left", "right", "up", "down")
    assert [rows.rows[row] for row in rows.row_of] == ["stay", "left", "right", "up", "down"]
    assert len(rows.rows) == 5


def test_in_procgen_s_maze_a_diagonal_counts_as_sideways_and_keys_as_other() -> None:
    rows = action_rows(spec("procgen:maze", 15))
    row = {action: rows.rows[at] for action, at in zip(rows.actions, rows.row_of)}
    assert row["left + up"] == row["left"] == row["left + down"] == "left"
    assert row["up"] == "up" and row["stay"] == row["key E"] == "other"
    assert rows.rows == ("up", "right", "down", "left", "other")


def test_agreement_on_actions_gives_every_action_a_row() -> None:
    rows = action_rows(spec("procgen:maze", 15), by_action=True)
    assert rows.rows == PROCGEN_ACTIONS and rows.row_of == tuple(range(15))


def test_unknown_environments_number_their_actions_and_envpool_s_procgen_does_not() -> None:
    assert action_rows(spec("gymnasium:Fifteen-v0", 15)).rows[0] == "action 0"
    assert action_rows(spec("gymnasium:CartPole-v9", 3)).rows[0] == "action 0"  # other actions than those we know
    assert action_rows(spec("envpool:MazeEasy-v0", 15)).actions == PROCGEN_ACTIONS


def test_gymnasium_s_own_games_have_names_as_their_documentation_gives_them() -> None:
    assert action_rows(spec("gymnasium:CartPole-v1", 2)).rows == ("push left", "push right")
    assert action_rows(spec("gymnasium:FrozenLake8x8-v1", 4)).rows[0] == "action 0"
    assert action_rows(spec("gymnasium:FrozenLake-v1", 4)).rows == ("left", "down", "right", "up")


def test_an_environment_s_own_names_come_first() -> None:
    assert action_rows(spec("gymnasium:CartPole-v1", 2), own_names=("west", "east")).rows == ("west", "east")


def test_where_a_key_shoots_it_is_called_fire() -> None:
    for name in ("procgen:starpilot", "envpool:StarpilotEasy-v0"):
        assert action_rows(spec(name, 15)).actions[9] == "fire"
    assert action_rows(spec("procgen:maze", 15)).actions[9] == "key D"
