"""Oracles against the wall follower, slow searches and reference counts."""

import numpy as np
import pytest

from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.envs.minimaze import Minimaze
from expgen.errors import InputError
from expgen.exploration.explore import explore
from expgen.exploration.oracle import CachedOracle, background_cells, first_frames, make_oracle, make_wall_follower
from expgen.reward.knn import KnnConfig

procgen = pytest.mark.skipif(not is_installed(), reason="no ProcGen library")


@pytest.mark.parametrize("options", [{}, {"max_cells": 3, "texture": 0}])
def test_minimaze_oracle_matches_wall_follower(options: dict[str, int]):
    """Equal on every level; where the goal encloses the agent, both are 0."""
    agent, env = make_wall_follower("minimaze", 100, 50, **options)
    result = explore(agent, env, KnnConfig(pool=1), make_oracle("minimaze", **options), 100)
    assert all(row.novelty == row.oracle for row in result.episodes)
    assert min(row.novelty for row in result.episodes) == 0
    assert result.oracle_share == result.oracle_success == (1.0, 1.0, 1.0)
    assert result.evaluation.solved_rate == 0


def test_minimaze_oracle_matches_slow_search():
    env = make_env("minimaze", 20, num_envs=20)
    assert isinstance(env, Minimaze)
    oracle = make_oracle("minimaze")
    assert oracle is not None
    for n, count in enumerate(oracle(env.observe().level)):
        found, ahead = set(), [tuple(env.agent[n])]
        while ahead:
            row, column = ahead.pop()
            if env.walls[n, row, column] or (row, column) == tuple(env.goal[n]) or (row, column) in found:
                continue
            found.add((row, column))
            ahead += [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
        assert count == len(found) - 1  # the first frame is not the result of a step


def test_cached_oracle_counts_levels_once_in_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("expgen.exploration.oracle._BATCH_LEVELS", 2)
    asked: list[list[int]] = []

    def count(level: np.ndarray) -> np.ndarray:
        asked.append(level.tolist())
        return level * 10

    oracle = CachedOracle(count)
    assert oracle(np.array([5, 3, 5, 9])).tolist() == [50, 30, 50, 90]
    assert oracle(np.array([9, 1])).tolist() == [90, 10]
    assert asked == [[3, 5], [9], [1]]


def test_make_oracle_returns_none_for_unsupported_environments():
    assert make_oracle("procgen:coinrun") is None
    assert make_oracle("gymnasium:CartPole-v1") is None
    assert make_oracle("procgen:maze", distribution_mode="hard") is None
    assert make_oracle("procgen:maze", hidden=True) is None
    with pytest.raises(InputError, match="env is 'procgen:heist'; accepted: minimaze, procgen:maze"):
        make_wall_follower("procgen:heist", 1, 1)


@procgen
@pytest.mark.procgen
@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, {"maze": 57.0, "jumper": 77.8, "heist": 102.5}), (201, {"maze": 56.8, "jumper": 81.4, "heist": 108.9})],
)
def test_oracle_means_match_reference(start: int, expected: dict[str, float]):
    """reproduction.md, section 2.13, over 200 levels."""
    level = np.arange(start, start + 200)
    for game, mean in expected.items():
        frame = first_frames(f"procgen:{game}", level, use_backgrounds=False, center_agent=False)
        assert background_cells(frame).mean() == pytest.approx(mean, abs=0.05)
    jumper, miner = make_oracle("procgen:jumper"), make_oracle("procgen:miner")
    assert jumper is not None and jumper(level).mean() == pytest.approx(expected["jumper"], abs=0.05)
    assert miner is not None and miner(level).mean() == pytest.approx(76.5, abs=0.05)


@procgen
@pytest.mark.procgen
def test_procgen_maze_oracle_matches_wall_follower():
    """Equal on every level, although the oracle reads only the first frame."""
    agent, env = make_wall_follower("procgen:maze", 30, 30)
    result = explore(agent, env, KnnConfig(), make_oracle("procgen:maze"), 30)
    env.close()
    assert all(row.novelty == row.oracle for row in result.episodes)
    assert all(row.episode.length == 500 for row in result.episodes)
    # 33.0 over levels 0 to 199, as reproduction.md, section 9; this is the mean of the first 30
    assert result.intrinsic_return.value == pytest.approx(40.65, abs=0.05)


@procgen
@pytest.mark.procgen
def test_procgen_maze_oracle_in_flat_colors_counts_cells():
    """The agent looks the same on both sides, so a cell is new only once."""
    flat = {"use_backgrounds": False, "use_monochrome_assets": True}
    agent, env = make_wall_follower("procgen:maze", 6, 6, **flat)
    result = explore(agent, env, KnnConfig(), make_oracle("procgen:maze", **flat), 6)
    env.close()
    assert all(row.novelty == row.oracle for row in result.episodes)
