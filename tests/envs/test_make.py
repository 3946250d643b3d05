"""make_env: names, levels and options that mean something, and one line for those that do not."""

from typing import Any

import numpy as np
import pytest

from expgen.envs.levels import LevelSet
from expgen.envs.make import FAMILIES, make_env
from expgen.errors import InputError


@pytest.mark.parametrize(
    "name",
    ["", "mazes", "minimaze:maze", "Minimaze", "procgen", "gymnasium:", "gymnasium", "envpool", ":", "a:b"],
)
def test_names_that_mean_nothing_are_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(InputError, match=f"^--env is '{name}'; accepted: ") as error:
        make_env(name)
    assert all(family in str(error.value) for family in FAMILIES)


@pytest.mark.parametrize("num_envs", [0, -1])
def test_make_env_refuses_less_than_one_environment(num_envs: int) -> None:
    with pytest.raises(InputError, match=f"num_envs is {num_envs}; accepted: 1 to 65536"):
        make_env("minimaze", num_envs=num_envs)


@pytest.mark.parametrize("levels", ["3,7,9", (3, 7, 9), [9, 7, 3], LevelSet((3, 7, 9)), range(3, 10, 3), np.array([3])])
def test_levels_in_any_spelling_are_all_that_is_played(levels: Any) -> None:
    env = make_env("minimaze", levels, num_envs=16, time_limit=1)
    allowed = LevelSet.parse(levels)
    for _ in range(10):
        env.act(np.zeros(16, dtype=np.int32))
        assert all(int(level) in allowed for level in env.observe().level)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_cell": 5}, r"option 'max_cell' is unknown; accepted: .*max_cells"),
        ({"max_cells": "5"}, r"max_cells is '5'; accepted: a value of type int"),
        ({"max_cells": 5.0}, r"max_cells is 5\.0; accepted: a value of type int"),
        ({"max_cells": True}, r"max_cells is True; accepted: a value of type int"),
    ],
)
def test_options_are_those_of_the_environment_and_of_their_type(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_env("minimaze", 5, 1, **options)


def test_options_and_seed_take_effect() -> None:
    small = make_env("minimaze", 50, 4, seed=0, max_cells=3)
    assert small.spec.obs_shape == (7, 7, 3)
    other = make_env("minimaze", 50, 4, seed=1, max_cells=3)
    assert not np.array_equal(small.observe().level, other.observe().level)


def test_a_game_that_does_not_exist_is_bad_input() -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(InputError, match="gymnasium:NoSuchGame-v0"):
        make_env("gymnasium:NoSuchGame-v0", 5, 1)
