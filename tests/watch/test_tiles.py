"""Drawing of mazes, enlarged images and bars."""

import numpy as np

from expgen.envs.make import make_env
from expgen.envs.minimaze import Minimaze
from expgen.watch.tiles import AGENT, GOAL, draw_bars, draw_tiles, enlarged


def test_tiles_of_a_maze_match_the_observation() -> None:
    env = make_env("minimaze", (1003,), num_envs=1, texture=0)
    assert isinstance(env, Minimaze)
    obs, walls, agent, goal = env.observe().obs[0], env.walls[0], env.agent[0], env.goal[0]
    picture = draw_tiles(obs, walls, agent, goal)
    tile = 512 // 11
    middle = picture[tile // 2 :: tile, tile // 2 :: tile]
    assert picture.shape == (11 * tile, 11 * tile, 3)
    assert tuple(middle[tuple(agent)]) == AGENT and tuple(middle[tuple(goal)]) == GOAL
    others = np.ones_like(walls)
    others[tuple(agent)] = others[tuple(goal)] = False
    assert (middle[others] == obs[others]).all()


def test_enlarged_keeps_pixels_square() -> None:
    picture = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    large = enlarged(picture)
    assert large.shape == (340, 510, 3) and (large[::170, ::170] == picture).all()


def test_bars_go_up_for_positive_and_down_for_negative_numbers() -> None:
    picture = draw_bars(np.array([1.0, -1.0, 0.0, np.nan], dtype=np.float32))
    is_bar = (picture == (70, 130, 200)).all(-1)
    up, down, none, unknown = (is_bar[:, i * 24 : (i + 1) * 24] for i in range(4))
    assert up[:32].any() and not up[33:].any() and down[33:].any() and not down[:32].any()
    assert not none.any() and not unknown.any()
