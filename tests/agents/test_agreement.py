"""Agreement: the action classes, their order, and the counts."""

import itertools

import numpy as np
import pytest

from expgen.agents.vote import DIRECTIONS, GRID, MINIMAZE, ActionClasses, Agreement, classes_of
from expgen.envs.minimaze import ACTIONS
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError

UP, RIGHT, DOWN, LEFT = 5, 7, 3, 1


def count(leaders: int, others: list[int], classes: ActionClasses | None, no_op_is_up: bool = False) -> int:
    """Return the number of votes for the action of member 0 in one ProcGen environment."""
    votes = np.array([[leaders], *([other] for other in others)])
    return int(Agreement(15, classes, no_op_is_up).count(votes, 0)[0])


def slow_count(votes: list[int], leader: int, classes: dict[str, set[int]], no_op_is_up: bool) -> int:
    """Count votes as the paper's code does, one environment at a time."""
    own = next((name for name, actions in classes.items() if votes[leader] in actions), None)
    if own is None and no_op_is_up:
        return sum(action in classes["up"] for action in votes)
    if own is None:
        return 1  # itself
    return sum(action in classes[own] for action in votes)


@pytest.mark.parametrize("classes", [GRID, DIRECTIONS], ids=["maze", "others"])
@pytest.mark.parametrize("no_op_is_up", [False, True])
@pytest.mark.parametrize("leader", [0, 6])
def test_counts_match_a_slow_reference(classes: ActionClasses, no_op_is_up: bool, leader: int):
    votes = np.random.default_rng(leader).integers(15, size=(10, 2000))
    fast = Agreement(15, classes, no_op_is_up).count(votes, leader)
    sets = {name: set(actions) for name, actions in classes.items()}
    assert fast.tolist() == [slow_count(column, leader, sets, no_op_is_up) for column in votes.T.tolist()]


@pytest.mark.parametrize(
    ("diagonal", "first", "second"), [(2, UP, LEFT), (8, UP, RIGHT), (6, RIGHT, DOWN), (0, DOWN, LEFT)]
)
def test_diagonal_counts_as_first_class_of_leader_and_both_classes_of_members(diagonal: int, first: int, second: int):
    assert count(diagonal, [first, first, second], DIRECTIONS) == 3
    assert count(first, [diagonal], DIRECTIONS) == 2
    assert count(second, [diagonal], DIRECTIONS) == 2


def test_support_of_every_action_by_hand():
    """Votes: up, up-left, right, a no-op, and none."""
    votes = np.array([[UP], [2], [RIGHT], [4], [-1]])
    maze, others = (Agreement(15, classes).support(votes)[:, 0].tolist() for classes in (GRID, DIRECTIONS))
    assert [maze[action] for action in (UP, 2, LEFT, RIGHT, 8, DOWN, 4, 9)] == [1, 1, 1, 1, 1, 0, 1, 1]
    assert [others[action] for action in (UP, 2, LEFT, RIGHT, 8, DOWN, 4, 9)] == [2, 2, 1, 1, 2, 0, 1, 0]


def test_maze_diagonals_count_as_left_or_right():
    assert count(2, [0, 1, 2, UP], GRID) == 4
    assert count(UP, [2, 8], GRID) == 1
    assert count(DOWN, [0, 6, 3], GRID) == 2


def test_no_op_in_maze_agrees_only_with_itself():
    assert count(4, [4, 4, 9, 14, UP], GRID) == 1
    assert count(UP, [4, 9], GRID) == 1


def test_no_op_is_up_counts_leaders_no_op_as_up():
    assert count(4, [UP, UP, UP, 4], GRID, no_op_is_up=True) == 3  # without the leader itself
    assert count(11, [4, 4], GRID, no_op_is_up=True) == 0
    assert count(UP, [4, UP], GRID, no_op_is_up=True) == 2  # no-ops of members do not count


def test_no_op_is_a_class_in_other_games():
    assert count(4, [4] * 9, DIRECTIONS) == 10  # the second quirk of the paper's code is not reproduced
    assert count(4, [9, 10, 14], DIRECTIONS) == 3
    assert count(9, [9, 4, 10], DIRECTIONS) == 2


@pytest.mark.parametrize("classes", [None, {}])
def test_without_classes_only_equal_actions_agree(classes: ActionClasses | None):
    table = Agreement(15, classes)
    for own, other in itertools.product(range(15), range(15)):
        assert table.count(np.array([[own], [other]]), 0)[0] == 1 + (own == other)


def test_classes_by_environment():
    def of(name: str, num_actions: int = 15) -> ActionClasses | None:
        return classes_of(EnvSpec(name, (64, 64, 3), "uint8", num_actions))

    assert of("procgen:maze") is GRID and of("procgen:miner") is GRID and of("envpool:MazeEasy-v0") is GRID
    assert of("procgen:heist") is DIRECTIONS and of("procgen:leaper") is DIRECTIONS
    assert of("envpool:HeistHard-v0") is DIRECTIONS
    assert of("minimaze", 5) is MINIMAZE
    assert of("gymnasium:CartPole-v1", 2) is None and of("envpool:CartPole-v1", 2) is None


def test_minimaze_classes_are_four_directions_without_no_op():
    assert {name: [ACTIONS[action] for action in actions] for name, actions in MINIMAZE.items()} == {
        name: [name] for name in ("up", "right", "down", "left")
    }


def test_environment_can_declare_action_classes():
    own = {"ahead": [0, 2], "back": [1]}
    spec = EnvSpec("procgen:maze", (3,), "float32", 3, own)
    assert classes_of(spec) == own
    assert Agreement(3, own).count(np.array([[0, 1, 2], [2, 2, 0]]), 0).tolist() == [2, 1, 2]


def test_class_with_unknown_actions_is_rejected():
    with pytest.raises(InputError, match=r"action class 'up' is \[3\]; accepted: ids in 0..2"):
        Agreement(3, {"up": [3]})
