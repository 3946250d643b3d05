"""LevelStream: one sequence of levels per environment."""

import numpy as np

from expgen.envs.levels import SEED_LIMIT, LevelSet, LevelStream


def draw(stream: LevelStream, num_envs: int, count: int) -> np.ndarray:
    all_envs = np.arange(num_envs)
    return np.stack([stream.next(all_envs) for _ in range(count)])


def test_level_stream_does_not_depend_on_number_of_environments() -> None:
    levels = LevelSet.parse("all")
    assert (draw(LevelStream(levels, 3, seed=5), 3, 20) == draw(LevelStream(levels, 8, seed=5), 8, 20)[:, :3]).all()


def test_level_streams_differ_between_seeds_and_environments() -> None:
    levels = LevelSet.parse("all")
    drawn = np.stack([draw(LevelStream(levels, 8, seed=seed), 8, 20) for seed in range(3)])
    assert len(np.unique(drawn)) == drawn.size


def test_level_stream_draws_levels_of_the_set_uniformly() -> None:
    for text in ("50", "1000:7", "3,7,900"):
        levels = LevelSet.parse(text)
        assert levels.seeds is not None
        drawn = draw(LevelStream(levels, 50, seed=1), 50, 400)
        found, count = np.unique(drawn, return_counts=True)
        assert found.tolist() == list(levels.seeds)
        expected = drawn.size / len(levels)
        assert np.abs(count - expected).max() < 5 * expected**0.5


def test_level_stream_of_all_covers_the_seed_range() -> None:
    drawn = draw(LevelStream(LevelSet.parse("all"), 100, seed=1), 100, 100)
    assert 0 <= drawn.min() < 0.01 * SEED_LIMIT and 0.99 * SEED_LIMIT < drawn.max() < SEED_LIMIT
    assert abs(drawn.mean() / SEED_LIMIT - 0.5) < 0.02


def test_level_stream_never_draws_excluded_levels() -> None:
    all_envs = np.arange(64)
    free = LevelStream(LevelSet.parse("all"), 64, seed=2)
    plain = np.stack([free.next(all_envs) for _ in range(4)])
    banned = LevelSet.parse(plain[[0, 2]].ravel().tolist())  # levels that would have been drawn
    stream = LevelStream(LevelSet.parse("all").without(banned), 64, seed=2)
    assert (stream.next(all_envs) == plain[1]).all()  # an excluded level is replaced by the next word's level
    assert (stream.next(all_envs) == plain[3]).all()


def test_level_stream_peek_matches_next() -> None:
    for levels in (LevelSet.parse("30"), LevelSet(None, excluded=range(0, SEED_LIMIT, 2**12))):
        stream = LevelStream(levels, 5, seed=3)
        peeked = stream.peek(6).reshape(6, 5)
        assert (draw(stream, 5, 6) == peeked).all()
