"""Layouts of Gymnasium's observation spaces, and action ranges."""

import numpy as np
import pytest
from gymnasium import spaces

from expgen.envs.spaces import ObsLayout, action_range, obs_layout
from expgen.errors import InputError


@pytest.mark.parametrize(
    ("space", "layout"),
    [
        (spaces.Box(0, 255, (64, 48, 3), np.uint8), ObsLayout((64, 48, 3), "uint8", None)),
        (spaces.Box(-1, 1, (4,), np.float64), ObsLayout((4,), "float32", None)),
        (spaces.Box(0, 255, (4,), np.uint8), ObsLayout((4,), "float32", None)),  # one axis: a vector
        (spaces.Box(0, 255, (8, 9), np.uint8), ObsLayout((8, 9, 1), "uint8", None, "none")),
        (spaces.Box(0, 255, (4, 84, 84), np.uint8), ObsLayout((84, 84, 4), "uint8", None, "first")),  # Atari's frames
        (spaces.Box(0, 255, (3, 210, 160), np.uint8), ObsLayout((210, 160, 3), "uint8", None, "first")),
        (spaces.Box(0, 255, (12, 84, 84), np.uint8), ObsLayout((84, 84, 12), "uint8", None, "first")),
        (spaces.Box(0, 255, (12, 210, 160), np.uint8), ObsLayout((210, 160, 12), "uint8", None, "first")),
        (spaces.Box(0, 255, (8, 5, 5), np.uint8), ObsLayout((5, 5, 8), "uint8", None, "first")),  # board planes
        (spaces.Box(0, 255, (5, 5, 8), np.uint8), ObsLayout((5, 5, 8), "uint8", None)),
        (spaces.Box(0, 255, (210, 160, 12), np.uint8), ObsLayout((210, 160, 12), "uint8", None)),
        (spaces.Box(0, 255, (7, 7, 3), np.uint8), ObsLayout((7, 7, 3), "uint8", None)),
        (spaces.Box(0, 255, (2, 4, 3), np.uint8), ObsLayout((2, 4, 3), "uint8", None)),
        (spaces.Discrete(6), ObsLayout((6,), "float32", 0)),
        (spaces.Discrete(6, start=-2), ObsLayout((6,), "float32", -2)),
    ],
)
def test_obs_layout_of_gymnasium_spaces(space: spaces.Space, layout: ObsLayout) -> None:
    assert obs_layout("gymnasium:X", space) == layout


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 1, (8, 8, 3), np.float32),  # a float picture
        spaces.Box(0, 255, (), np.uint8),
        spaces.MultiDiscrete([3, 3]),
        spaces.MultiBinary(3),
        spaces.Dict({f"part{index}": spaces.Box(-np.ones(9), np.ones(9)) for index in range(9)}),
    ],
)
def test_obs_layout_rejects_other_spaces_in_one_short_line(space: spaces.Space) -> None:
    with pytest.raises(
        InputError, match=r"^--env is 'gymnasium:X' with observations .*; accepted: a uint8 Box"
    ) as error:
        obs_layout("gymnasium:X", space)
    assert "\n" not in str(error.value) and len(str(error.value)) < 260


@pytest.mark.parametrize("shape", [(8, 4, 4), (84, 3, 3), (9, 5, 9), (64, 6, 48)])
def test_obs_layout_rejects_ambiguous_channel_axis(shape: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match=r"whose channel axis is ambiguous; accepted: height, width, channel"):
        obs_layout("gymnasium:X", spaces.Box(0, 255, shape, np.uint8))


def test_fill_moves_or_adds_the_channel_axis() -> None:
    given = np.arange(2 * 3 * 4 * 5, dtype=np.uint8).reshape(2, 3, 4, 5)  # two pictures, channel first
    buffer = np.zeros((4, 4, 5, 3), dtype=np.uint8)
    layout = ObsLayout((4, 5, 3), "uint8", None, "first")
    layout.fill(buffer, 1, given[0])
    layout.fill(buffer, np.array([3, 0]), given)
    assert [int(buffer[row, 1, 2, 2]) for row in (1, 3, 0)] == [int(given[i, 2, 1, 2]) for i in (0, 0, 1)]
    assert (buffer[3] == given[0].transpose(1, 2, 0)).all() and not buffer[2].any()
    grey = np.zeros((1, 4, 5, 1), dtype=np.uint8)
    ObsLayout((4, 5, 1), "uint8", None, "none").fill(grey, 0, given[1, 2])
    assert (grey[0, ..., 0] == given[1, 2]).all()


def test_action_range_accepts_any_start_and_rejects_other_spaces() -> None:
    assert action_range("x", spaces.Discrete(3)) == range(3)
    assert action_range("x", spaces.Discrete(3, start=-1)) == range(-1, 2)
    for space in (spaces.Box(-1, 1, (2,)), spaces.MultiDiscrete([2, 2])):
        with pytest.raises(InputError, match="accepted: Discrete actions"):
            action_range("x", space)


def test_fill_writes_discrete_values_as_one_hot() -> None:
    layout, buffer = ObsLayout((3,), "float32", 5), np.zeros((4, 3), dtype=np.float32)
    layout.fill(buffer, 1, 6)
    layout.fill(buffer, 1, 7)
    layout.fill(buffer, np.array([0, 3]), np.array([5, 6]))
    assert buffer.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_fill_copies_boxes_to_rows() -> None:
    layout, buffer = ObsLayout((2,), "float32", None), np.zeros((3, 2), dtype=np.float32)
    layout.fill(buffer, 2, [0.5, 1])
    layout.fill(buffer, np.array([1, 0]), np.array([[1, 2], [3, 4]]))
    assert buffer.tolist() == [[3, 4], [1, 2], [0.5, 1]]


@pytest.mark.parametrize("value", [4, 8, np.array([6, 4])])
def test_fill_rejects_discrete_values_outside_the_space(value: int) -> None:
    buffer = np.zeros((2, 3), dtype=np.float32)
    with pytest.raises(IndexError):
        ObsLayout((3,), "float32", 5).fill(buffer, np.arange(np.size(value)), value)
