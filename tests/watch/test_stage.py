"""Stages: large pictures, positions and maps of the whole level."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from expgen.envs.levels import LevelSet
from expgen.envs.library import is_installed
from expgen.watch.stage import as_picture, crop_to_world, open_stage


def test_crop_to_world_removes_margins() -> None:
    picture = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    assert (crop_to_world(picture, 5, 5) == picture).all()
    assert (crop_to_world(picture, width=16, height=64) == picture[:, 3:5]).all()  # 8 · 16 / 64 = 2 columns
    assert (crop_to_world(picture, width=10, height=5) == picture[2:6]).all()


def test_as_picture_shows_the_last_of_stacked_grey_frames() -> None:
    frames = np.random.default_rng(0).integers(256, size=(5, 6, 4), dtype=np.uint8)
    picture = as_picture(frames)
    assert picture.shape == (5, 6, 3) and (picture == frames[..., 3:]).all()
    assert as_picture(picture) is picture


def test_minimaze_map_counts_cells_reachable_before_the_goal() -> None:
    stage = open_stage("minimaze", LevelSet((1003,)))
    level_map, (row, column) = stage.level_map(), stage.position() or (-1, -1)
    env = stage.env
    walls, goal = env.walls[0], tuple(env.goal[0])  # type: ignore[attr-defined]
    seen, edge = set(), [(row, column)]
    while edge:
        cell = edge.pop()
        if cell in seen or cell == goal or walls[cell]:
            continue
        seen.add(cell)
        edge += [(cell[0] + i, cell[1] + j) for i, j in ((0, 1), (1, 0), (0, -1), (-1, 0))]
    assert level_map is not None and level_map.reachable == len(seen) > 1


class Transparent(gymnasium.Env[np.ndarray, int]):
    """Renders pictures with an alpha channel."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, **options: Any) -> tuple[np.ndarray, dict[str, Any]]:
        return np.zeros(3, np.float32), {}

    def render(self) -> Any:
        return np.zeros((8, 8, 4), np.uint8)


def test_stage_falls_back_to_the_observation_without_a_valid_picture() -> None:
    gymnasium.register("expgen-test/Transparent-v0", Transparent)
    try:
        stage = open_stage("gymnasium:expgen-test/Transparent-v0", LevelSet((0,)))
        assert stage.picture().shape[2] == 3 and stage.picture().shape != (8, 8, 3)
        stage.env.close()
    finally:
        del gymnasium.registry["expgen-test/Transparent-v0"]


@pytest.mark.skipif(not is_installed(), reason="needs the ProcGen library (scripts/setup-procgen)")
@pytest.mark.procgen
class TestProcgen:
    @pytest.mark.parametrize(("game", "rows", "columns"), [("climber", 64, 16), ("jumper", 20, 20), ("heist", 9, 9)])
    def test_procgen_map_shows_the_whole_world(self, game: str, rows: int, columns: int) -> None:
        stage = open_stage(f"procgen:{game}", LevelSet((7,)))
        level_map, position = stage.level_map(), stage.position()
        assert level_map is not None and (level_map.rows, level_map.columns) == (rows, columns)
        assert level_map.picture.shape == (
            round(512 * rows / max(rows, columns)),
            round(512 * columns / max(rows, columns)),
            3,
        )
        assert position is not None and 0 <= position[0] < rows and 0 <= position[1] < columns
        stage.env.close()

    def test_hidden_maze_is_visible_in_pictures_but_not_in_observations(self) -> None:
        stage = open_stage("procgen:maze", LevelSet((3,)), hidden=True)
        large, seen = stage.picture(), stage.env.observe().obs[0]
        assert len(np.unique(large.reshape(-1, 3), axis=0)) > len(np.unique(seen.reshape(-1, 3), axis=0))
        assert stage.level_map() is None and stage.position() is None
        stage.env.close()
