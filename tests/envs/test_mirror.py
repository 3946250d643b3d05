"""Mirrored games: what is shown, what is carried out, and that the symmetry is one of the game."""

import numpy as np
import pytest

from expgen.envs.make import build_env
from expgen.envs.mirror import MIRRORS, HalfMirrored
from expgen.errors import InputError

GAMES = sorted(MIRRORS)


def pair(game: str, levels="0:8", num_envs: int = 4, full_view: bool = False):
    bare = build_env(game, levels, num_envs, seed=3, full_view=full_view)
    return bare, HalfMirrored(build_env(game, levels, num_envs, seed=3, full_view=full_view))


@pytest.mark.parametrize("game", GAMES)
def test_the_first_half_of_the_games_is_shown_and_played_as_it_is(game):
    bare, half = pair(game)
    rng = np.random.default_rng(0)
    for _ in range(50):
        plain, seen = bare.observe(), half.observe()
        np.testing.assert_array_equal(seen.obs[:2], plain.obs[:2])
        action = rng.integers(bare.spec.num_actions, size=4).astype(np.int32)
        bare.act(action)
        half.act(action)


@pytest.mark.parametrize("game", GAMES)
def test_a_mirrored_game_is_the_game_played_with_left_and_right_swapped(game):
    bare, half = pair(game)
    mirror, rng = MIRRORS[game], np.random.default_rng(1)
    for _ in range(200):
        plain, seen = bare.observe(), half.observe()
        np.testing.assert_array_equal(seen.obs[2:], mirror.mirrored(plain.obs[2:]))
        for name in ("reward", "first", "level", "solved", "timed_out"):
            np.testing.assert_array_equal(getattr(seen, name), getattr(plain, name))
        action = rng.integers(bare.spec.num_actions, size=4).astype(np.int32)
        bare.act(np.concatenate([action[:2], mirror.swap[action[2:]]]))
        half.act(action)


@pytest.mark.parametrize("game", GAMES)
def test_swapping_twice_is_the_action_itself(game):
    swap = MIRRORS[game].swap
    np.testing.assert_array_equal(swap[swap], np.arange(len(swap)))


def test_going_left_in_a_mirrored_minimaze_moves_the_agent_left_on_its_picture():
    _, half = pair("minimaze", "0:40", 40)
    before = half.observe().obs.copy()
    half.act(np.full(40, 1, np.int32))  # left
    moved = 0
    seen = half.observe()
    for old, new in zip(before[20:][~seen.first[20:]], seen.obs[20:][~seen.first[20:]]):
        changed = np.flatnonzero((old != new).any((0, 2)))  # columns
        if len(changed):  # no wall in the way: the agent left one column and stands in the one before
            assert len(changed) == 2 and changed[1] == changed[0] + 1
            agent = _agent_of(old, new)
            assert agent == (changed[1], changed[0])
            moved += 1
    assert moved >= 3


def _agent_of(old, new):
    """The columns of the colour that both frames have once, and in different places."""
    for colour in np.unique(old.reshape(-1, 3), axis=0):
        was, now = (np.argwhere((frame == colour).all(2)) for frame in (old, new))
        if len(was) == len(now) == 1 and (was != now).any():
            return int(was[0, 1]), int(now[0, 1])
    raise AssertionError("nobody moved")


def test_jumpers_compass_stays_in_its_corner_and_points_to_the_other_side():
    bare, half = pair("procgen:jumper", "0:200", 64)
    plain, seen = bare.observe().obs[32:].astype(int), half.observe().obs[32:].astype(int)
    grey = np.abs(plain[:, 9, 47] - (168, 166, 158)).sum(-1) < 40  # the compass's rim, left of its middle
    assert grey.mean() > 0.8
    np.testing.assert_array_equal(seen[:, 1:17, 54], plain[:, 1:17, 54])  # the middle column
    np.testing.assert_array_equal(seen[:, 9, 47:62], plain[:, 9, 61:46:-1])
    np.testing.assert_array_equal(seen[:, 18, 46:], plain[:, 18, 46:])  # the bar of distance
    np.testing.assert_array_equal(seen[:, 30:], plain[:, 30:, ::-1])


def test_a_level_that_is_chosen_is_mirrored_at_once():
    bare, half = pair("procgen:jumper")
    seen = half.observe()
    bare.observe()
    for env in (0, 3):
        bare.play(env, 5)
        half.play(env, 5)
    np.testing.assert_array_equal(seen.obs[0], bare.observe().obs[0])
    np.testing.assert_array_equal(seen.obs[3:], MIRRORS["procgen:jumper"].mirrored(bare.observe().obs[3:]))
    assert (seen.level[[0, 3]] == 5).all()


def test_what_the_intrinsic_reward_measures_is_not_mirrored_where_it_is_a_view_of_its_own():
    bare, half = pair("procgen:jumper", full_view=True)
    np.testing.assert_array_equal(half.observe().full, bare.observe().full)
    _, whole = pair("procgen:maze", full_view=True)
    assert whole.observe().full is whole.observe().obs


def test_saved_mirrored_games_go_on_as_they_would_have():
    _, half = pair("procgen:maze")
    rng = np.random.default_rng(2)
    actions = rng.integers(15, size=(60, 4)).astype(np.int32)
    for action in actions[:30]:
        half.observe()
        half.act(action)
    half.observe()
    state = half.save()
    _, other = pair("procgen:maze")
    other.restore(state)
    np.testing.assert_array_equal(other.observe().obs, half.observe().obs)
    for action in actions[30:]:
        half.act(action)
        other.act(action)
        np.testing.assert_array_equal(other.observe().obs, half.observe().obs)


def test_a_game_without_a_known_mirror_image_is_refused():
    with pytest.raises(InputError, match="--mirror is on but procgen:starpilot has no mirror image that we know"):
        HalfMirrored(build_env("procgen:starpilot", "0:2", 2))
    with pytest.raises(InputError, match="can't be saved"):
        HalfMirrored(build_env("procgen:maze", "0:2", 2, use_generated_assets=True))


def test_training_on_mirrored_games_differs_and_resumes_bit_equal(small, tmp_path, equal):
    small.train(tmp_path / "plain", 4)
    small.train(tmp_path / "whole", 4, mirror=True)
    small.train(tmp_path / "halves", 2, mirror=True)
    small.train(tmp_path / "halves", 4, mirror=True, resume=True)
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "halves"))
    assert not equal(small.weights(tmp_path / "whole"), small.weights(tmp_path / "plain"))
