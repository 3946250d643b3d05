"""Layouts read from pictures match the mazes."""

import numpy as np
import pytest

from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.envs.minimaze import Minimaze
from expgen.exploration.wall_follower import read_minimaze, read_procgen_maze


@pytest.mark.parametrize("options", [{}, {"texture": 0}, {"num_themes": 1}, {"max_cells": 2}])
def test_read_minimaze_matches_walls_agent_and_goal(options: dict[str, int]):
    env = make_env("minimaze", 300, num_envs=300, **options)
    assert isinstance(env, Minimaze)
    rng, here = np.random.default_rng(0), np.arange(300)
    for _ in range(10):
        is_free, agent = read_minimaze(env.observe().obs)
        expected = ~env.walls
        expected[here, env.goal[:, 0], env.goal[:, 1]] = False
        assert (is_free == expected).all()
        assert (np.stack(np.divmod(agent, is_free.shape[2]), axis=1) == env.agent).all()
        env.act(rng.integers(5, size=300).astype(np.int32))


@pytest.mark.procgen
@pytest.mark.skipif(not is_installed(), reason="no ProcGen library")
def test_read_procgen_maze_by_hand():
    """Level 5, 7 × 7 in the middle of 15 × 15: the goal in the upper right corner, the agent in the lower left."""
    env = make_env("procgen:maze", (5,), num_envs=1, use_backgrounds=False, use_monochrome_assets=True)
    is_free, agent = read_procgen_maze(env.observe().obs)
    env.close()
    assert divmod(int(agent[0]), 17) == (11, 5)
    assert is_free.sum() == is_free[0, 5:12, 5:12].sum()
    assert ["".join(".#"[int(not cell)] for cell in row) for row in is_free[0, 5:12, 5:12]] == [
        "......#",  # G
        ".######",
        ".#.#.#.",
        ".#.#.#.",
        ".......",
        "####.#.",
        ".....#.",
    ]
