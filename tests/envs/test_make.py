"""make_env: names, levels and options."""

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
def test_make_env_rejects_unknown_names_and_lists_known_ones(name: str) -> None:
    with pytest.raises(InputError, match=f"^--env is '{name}'; accepted: ") as error:
        make_env(name)
    assert all(family in str(error.value) for family in FAMILIES)


@pytest.mark.parametrize("levels", ["3,7,9", (3, 7, 9), [9, 7, 3], LevelSet((3, 7, 9)), range(3, 10, 3), np.array([3])])
def test_make_env_plays_only_given_levels(levels: Any) -> None:
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
def test_make_env_rejects_unknown_options_and_wrong_types(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_env("minimaze", 5, 1, **options)


def test_make_env_uses_options_and_seed() -> None:
    small = make_env("minimaze", 50, 4, seed=0, max_cells=3)
    assert small.spec.obs_shape == (7, 7, 3)
    other = make_env("minimaze", 50, 4, seed=1, max_cells=3)
    assert not np.array_equal(small.observe().level, other.observe().level)
