"""The right-hand rule, step by step."""

import numpy as np
import pytest

from expgen.envs.make import make_env
from expgen.exploration.wall_follower import STAY, Layout, WallFollower, minimaze_follower, next_heading, position_steps


def maze(*rows: str) -> Layout:
    picture = np.array([list(row) for row in rows])
    return Layout((picture != "#")[None], np.flatnonzero(picture.ravel() == "A"))


def walk(layout: Layout, num_steps: int) -> str:
    heading, way = np.zeros(1, dtype=np.int64), ""
    for _ in range(num_steps):
        heading = next_heading(layout, heading)
        layout = layout._replace(agent=layout.agent + position_steps(layout)[heading])
        way += "rdlu."[int(heading[0])]
    return way


def test_wall_follower_tour_by_hand():
    """Up is the only free cell; at each fork it takes the right branch first, then returns and goes ahead."""
    layout = maze(
        "#####",
        "#.#.#",
        "#...#",
        "#A#.#",
        "#####",
    )
    assert walk(layout, 12) == "urrduudlludd"  # six edges, each of them twice


@pytest.mark.parametrize(
    ("rows", "first"),
    [
        (("###", "#A.", "#.#"), "d"),  # right of right is down
        (("#.#", "#A.", "###"), "r"),  # ahead before left
        (("#.#", ".A#", "###"), "u"),  # left before back
        (("###", ".A#", "###"), "l"),
        (("###", "#A#", "###"), "."),  # no free cell: it stays
    ],
)
def test_wall_follower_tries_right_ahead_left_back(rows: tuple[str, ...], first: str):
    assert walk(maze(*rows), 1) == first


def test_wall_follower_stays_when_no_cell_is_free():
    assert walk(maze("###", "#A#", "###"), 3) == "..."
    assert next_heading(maze("###", "#A#", "###"), np.array([STAY])) == STAY


def test_wall_follower_starts_episodes_heading_right():
    cross = maze("#.#", ".A.", "#.#")
    agent = WallFollower(lambda obs: Layout(cross.is_free.repeat(2, 0), cross.agent.repeat(2)), (10, 11, 12, 13, 14))
    obs = np.zeros((2, 1))
    assert agent.act(obs, np.array([True, True])).tolist() == [11, 11]  # down is right of right
    assert agent.act(obs, np.array([False, True])).tolist() == [12, 11]  # and left is right of down


def test_wall_follower_never_touches_the_goal():
    env = make_env("minimaze", 200, num_envs=200)
    agent = minimaze_follower()
    for _ in range(env.config.horizon - 1):  # type: ignore[attr-defined]
        observation = env.observe()
        env.act(agent.act(observation.obs, observation.first))
        assert not env.observe().solved.any()
