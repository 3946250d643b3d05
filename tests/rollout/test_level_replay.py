"""Level replay: level scores and weights by hand, draw frequencies, and the order of unseen levels."""

import numpy as np
import pytest
import torch

from expgen.envs.levels import LevelSet
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.rollout.level_replay import (
    LevelReplay,
    ReplayConfig,
    rank_weights,
    segment_scores,
    staleness_weights,
)
from expgen.rollout.rollout import Rollout

LEVELS = LevelSet.parse("100:6")


def replay(levels: LevelSet = LEVELS, num_envs: int = 4, seed: int = 0, **changes: float) -> LevelReplay:
    return LevelReplay(ReplayConfig(**changes), levels, num_envs, seed)


def seen_replay(score: list[float], **changes: float) -> LevelReplay:
    chooser = replay(LevelSet.parse(len(score)), **changes)
    state = chooser.state()
    state |= {"score": np.array(score), "seen": np.ones(len(score), bool), "has_opened": np.array([True])}
    chooser.load_state(state)
    return chooser


ADVANTAGE = np.array([[1, 2], [-3, 2], [2, 2], [4, -6]], np.float32)  # [T=4, N=2]
FIRST = np.array([[0, 1], [0, 0], [1, 0], [0, 0], [0, 1]], bool)
LEVEL = np.array([[101, 103], [101, 103], [105, 103], [105, 103], [105, 101]], np.int32)


def test_segment_scores_are_mean_absolute_advantages_per_episode():
    """Environment 0: |1|, |−3| on level 101, finished; |2|, |4| on 105, unfinished. Environment 1: 103, finished."""
    level, score = segment_scores(ADVANTAGE, FIRST, LEVEL)
    assert level.tolist() == [101, 103, 105]  # finished episodes come first
    assert score.tolist() == [2.0, 3.0, 3.0]


def played(advantage: np.ndarray, first: np.ndarray, level: np.ndarray) -> Rollout:
    rollout = Rollout(EnvSpec("toy", (1,), "float32", 2), *advantage.shape, 0, torch.device("cpu"))
    rollout.advantage.copy_(torch.from_numpy(advantage))
    rollout.host_first.copy_(torch.from_numpy(first))
    rollout.host_level.copy_(torch.from_numpy(level))
    return rollout


def test_new_score_replaces_the_old_one_and_marks_the_level_seen():
    chooser = replay()
    chooser.learn(played(ADVANTAGE, FIRST, LEVEL))
    assert chooser.score.tolist() == [0, 2, 0, 3, 0, 3]
    assert chooser.seen.tolist() == [False, True, False, True, False, True]
    assert chooser.summary() == {"levels_seen": 3, "level_score": pytest.approx(8 / 3)}
    again = np.where(LEVEL == 105, 101, LEVEL)  # level 101 twice in environment 0: the unfinished episode counts
    chooser.learn(played(2 * ADVANTAGE, FIRST, again))
    assert chooser.score.tolist() == [0, 6, 0, 6, 0, 3]


def test_rank_weights_by_hand():
    """Scores 1, 3, 2 have ranks 3, 1, 2; with β = ½ the weights are 1/9, 1, 1/4."""
    score, everything = np.array([1.0, 3.0, 2.0]), np.ones(3, bool)
    np.testing.assert_allclose(rank_weights(score, everything, 0.5), np.array([1 / 9, 1, 1 / 4]) / (49 / 36))
    some = np.array([True, False, True])  # unseen levels have ranks too
    np.testing.assert_allclose(rank_weights(score, some, 0.5), np.array([1 / 9, 0, 1 / 4]) / (13 / 36))
    np.testing.assert_allclose(rank_weights(score, everything, 0.1)[1], 1 / (1 + 2.0**-10 + 3.0**-10))


def test_replay_weights_by_hand():
    np.testing.assert_allclose(staleness_weights(np.array([3.0, 1, 6]), np.array([True, True, False])), [0.75, 0.25, 0])
    chooser = seen_replay([1.0, 3.0, 2.0], rank_temperature=1.0)
    chooser.staleness[:] = [3, 0, 1]
    by_score, by_staleness = np.array([1 / 3, 1, 1 / 2]) / (11 / 6), np.array([3, 0, 1]) / 4
    np.testing.assert_allclose(chooser.replay_weights(), 0.9 * by_score + 0.1 * by_staleness)
    chooser.staleness[:] = 0  # no staleness: weights by score only
    np.testing.assert_allclose(chooser.replay_weights(), by_score)


@pytest.mark.parametrize("staleness_coef", [0.0, 0.3])
def test_replay_frequencies_match_the_formula(staleness_coef: float):
    """Counts against the sum of the probabilities at each draw, within four standard deviations for every level."""
    chooser = seen_replay([0.5, 3, 1, 2, 0.1, 0.7, 0.2], rank_temperature=1.0, staleness_coef=staleness_coef)
    count, expected, variance = np.zeros(7), np.zeros(7), np.zeros(7)
    for _ in range(4000):
        weight = chooser.replay_weights()
        assert weight.sum() == pytest.approx(1)
        expected += weight
        variance += weight * (1 - weight)
        count[chooser.draw()] += 1
    assert (np.abs(count - expected) < 4 * np.sqrt(variance)).all(), (count, expected)
    if staleness_coef == 0:
        np.testing.assert_allclose(expected / 4000, 1 / np.array([5, 1, 3, 2, 7, 4, 6]) / (1 / np.arange(1, 8)).sum())
    else:
        assert count.argmax() == 1 and count.min() > 4000 * 0.3 / 7 / 2  # every level is replayed


@pytest.mark.parametrize("seen", [(True, True, True), (True, False, False)])
def test_staleness_counts_draws_since_a_level_was_drawn(seen: tuple[bool, ...]):
    """Also of levels that have no score yet."""
    chooser = seen_replay([1.0, 2.0, 3.0])
    chooser.seen[:] = seen
    drawn = [chooser.draw() for _ in range(20)]
    expected = [drawn[::-1].index(level) if level in drawn else 20 for level in range(3)]
    assert chooser.staleness.tolist() == expected


def test_level_replay_plays_unseen_levels_until_all_have_a_score():
    chooser = replay()
    assert chooser.choose(np.arange(4)).tolist() == [100, 101, 102, 103]
    assert not chooser.staleness.any()  # the first levels are not draws
    chooser.learn(played(ADVANTAGE, FIRST, LEVEL))  # 101, 103, 105
    fresh = {int(chooser.choose(np.array([0]))[0]) for _ in range(60)}
    assert fresh == {100, 102, 104}
    chooser.learn(played(ADVANTAGE, FIRST, LEVEL - 1))  # the other levels: all are seen now
    counts = np.bincount([chooser.draw() for _ in range(200)], minlength=6)
    assert counts[0] < counts[2] + counts[4] and (counts[1::2].sum() > 0)


def test_first_levels_repeat_with_more_environments_than_levels():
    assert replay(num_envs=8).choose(np.arange(8)).tolist() == [100, 101, 102, 103, 104, 105, 100, 101]


def test_replay_begins_at_the_replay_threshold():
    chooser = replay(replay_threshold=0.5)
    chooser.choose(np.arange(4))
    chooser.learn(played(ADVANTAGE, FIRST, LEVEL))  # half of the levels are seen, so half of the draws are replays
    replayed = np.mean([chooser.draw() in (1, 3, 5) for _ in range(400)])
    assert 0.4 < replayed < 0.6


def test_restored_level_replay_draws_the_same_levels():
    chooser = replay(seed=5)
    chooser.choose(np.arange(4))
    chooser.learn(played(ADVANTAGE, FIRST, LEVEL))
    other = replay(seed=5)
    other.load_state(chooser.state())
    draws = [[one.draw() for _ in range(30)] for one in (chooser, other)]
    assert draws[0] == draws[1]
    other_seed = replay(seed=6)
    other_seed.load_state(chooser.state())
    other_seed.load_state(other.state())
    assert [other_seed.draw() for _ in range(30)] != [other.draw() for _ in range(30)]


def test_level_replay_rejects_an_infinite_level_set():
    with pytest.raises(InputError, match="--levels is 'all'; accepted with level replay: a finite set"):
        replay(LevelSet.parse("all"))
