"""Votes: the class tables, their order, and the counting."""

import itertools

import numpy as np
import pytest

from expgen.agents.vote import DIRECTIONS, GRID, MINIMAZE, ActionClasses, Agreement, classes_of
from expgen.envs.minimaze import ACTIONS
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError

UP, RIGHT, DOWN, LEFT = 5, 7, 3, 1


def count(leaders: int, others: list[int], classes: ActionClasses | None, no_op_is_up: bool = False) -> int:
    """Votes for a leader's action (member 0) in one ProcGen environment."""
    votes = np.array([[leaders], *([other] for other in others)])
    return int(Agreement(15, classes, no_op_is_up).count(votes, 0)[0])


def slow_count(votes: list[int], leader: int, classes: dict[str, set[int]], no_op_is_up: bool) -> int:
    """Reproduction 2.4, steps 2 and 3, one environment at a time."""
    own = next((name for name, actions in classes.items() if votes[leader] in actions), None)
    if own is None and no_op_is_up:
        return sum(action in classes["up"] for action in votes)
    if own is None:
        return 1  # itself
    return sum(action in classes[own] for action in votes)


@pytest.mark.parametrize("classes", [GRID, DIRECTIONS], ids=["maze", "others"])
@pytest.mark.parametrize("no_op_is_up", [False, True])
@pytest.mark.parametrize("leader", [0, 6])
def test_counts_are_those_of_slow_counting(classes: ActionClasses, no_op_is_up: bool, leader: int):
    votes = np.random.default_rng(leader).integers(15, size=(10, 2000))
    fast = Agreement(15, classes, no_op_is_up).count(votes, leader)
    sets = {name: set(actions) for name, actions in classes.items()}
    assert fast.tolist() == [slow_count(column, leader, sets, no_op_is_up) for column in votes.T.tolist()]


@pytest.mark.parametrize(
    ("diagonal", "first", "second"), [(2, UP, LEFT), (8, UP, RIGHT), (6, RIGHT, DOWN), (0, DOWN, LEFT)]
)
def test_a_leaders_diagonal_is_its_first_class_and_a_members_counts_for_both(diagonal: int, first: int, second: int):
    assert count(diagonal, [first, first, second], DIRECTIONS) == 3
    assert count(first, [diagonal], DIRECTIONS) == 2
    assert count(second, [diagonal], DIRECTIONS) == 2


def test_support_of_every_action_by_hand():
    """Two go up, one of them to the left too, one goes right, one stands still, one is not asked."""
    votes = np.array([[UP], [2], [RIGHT], [4], [-1]])
    maze, others = (Agreement(15, classes).support(votes)[:, 0].tolist() for classes in (GRID, DIRECTIONS))
    assert [maze[action] for action in (UP, 2, LEFT, RIGHT, 8, DOWN, 4, 9)] == [1, 1, 1, 1, 1, 0, 1, 1]
    assert [others[action] for action in (UP, 2, LEFT, RIGHT, 8, DOWN, 4, 9)] == [2, 2, 1, 1, 2, 0, 1, 0]


def test_in_maze_left_and_right_win_over_up_and_down():
    assert count(2, [0, 1, 2, UP], GRID) == 4
    assert count(UP, [2, 8], GRID) == 1
    assert count(DOWN, [0, 6, 3], GRID) == 2


def test_standing_still_in_maze_agrees_with_nothing_but_itself():
    assert count(4, [4, 4, 9, 14, UP], GRID) == 1
    assert count(UP, [4, 9], GRID) == 1


def test_quirk_1_takes_a_leaders_standing_still_for_up():
    assert count(4, [UP, UP, UP, 4], GRID, no_op_is_up=True) == 3  # the leader itself is not among them
    assert count(11, [4, 4], GRID, no_op_is_up=True) == 0
    assert count(UP, [4, UP], GRID, no_op_is_up=True) == 2  # members' standing still is never counted


def test_elsewhere_standing_still_is_a_class_for_every_member():
    assert count(4, [4] * 9, DIRECTIONS) == 10  # quirk 2, members 1, 2, 3, 5, 7, 9 not counting 4, is not kept
    assert count(4, [9, 10, 14], DIRECTIONS) == 3
    assert count(9, [9, 4, 10], DIRECTIONS) == 2


def test_without_classes_only_the_same_action_agrees():
    table = Agreement(15, None)
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


def test_minimaze_has_its_four_directions_and_standing_still_in_none():
    assert {name: [ACTIONS[action] for action in actions] for name, actions in MINIMAZE.items()} == {
        name: [name] for name in ("up", "right", "down", "left")
    }


def test_an_environment_may_declare_its_own_classes():
    own = {"ahead": [0, 2], "back": [1]}
    spec = EnvSpec("procgen:maze", (3,), "float32", 3, own)
    assert classes_of(spec) == own
    assert Agreement(3, own).count(np.array([[0, 1, 2], [2, 2, 0]]), 0).tolist() == [2, 1, 2]


def test_a_class_of_unknown_actions_is_refused():
    with pytest.raises(InputError, match=r"action class 'up' is \[3\]; accepted: ids in 0..2"):
        Agreement(3, {"up": [3]})
