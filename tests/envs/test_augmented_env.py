"""Mirrored games: what is shown, what is carried out, and that the symmetry is one of the game."""

import numpy as np
import pytest

from expgen.envs.augmented_env import ALL_VIEWS, SYMMETRIES, AugmentedEnv, View
from expgen.envs.make import build_env
from expgen.errors import InputError

GAMES = sorted(SYMMETRIES)


def pair(game: str, levels="0:8", num_envs: int = 16, full_view: bool = False):
    bare = build_env(game, levels, num_envs, seed=3, full_view=full_view)
    return bare, AugmentedEnv(build_env(game, levels, num_envs, seed=3, full_view=full_view))


@pytest.mark.parametrize("game", GAMES)
def test_games_are_shown_in_equal_shares_and_the_first_of_them_as_they_are(game):
    bare, mirrored = pair(game)
    views = SYMMETRIES[game].views
    share = 16 // len(views)
    rng = np.random.default_rng(1)
    for _ in range(100):
        plain, seen = bare.observe(), mirrored.observe()
        np.testing.assert_array_equal(seen.obs[:share], plain.obs[:share])
        for index, view in enumerate(views):
            part = slice(index * share, (index + 1) * share)
            np.testing.assert_array_equal(seen.obs[part], SYMMETRIES[game].show(view, plain.obs[part]))
        for name in ("reward", "first", "level", "solved", "timed_out"):
            np.testing.assert_array_equal(getattr(seen, name), getattr(plain, name))
        action = rng.integers(bare.spec.num_actions, size=16).astype(np.int32)
        tables = [SYMMETRIES[game].actions_in_game(view, bare.spec.num_actions) for view in views]
        bare.act(np.array([tables[env // share][action[env]] for env in range(16)], np.int32))
        mirrored.act(action)


def test_the_views_of_a_maze_are_eight_and_all_different():
    picture = np.arange(27, dtype=np.uint8).reshape(1, 3, 3, 3)
    shown = {view.move_pixels(picture).tobytes() for view in ALL_VIEWS}
    assert len(shown) == len(ALL_VIEWS) == 8
    assert ALL_VIEWS[0] == View()


@pytest.mark.parametrize("view", ALL_VIEWS)
def test_a_step_on_a_view_is_the_step_in_the_game_that_moves_what_the_view_shows(view):
    game = np.zeros((1, 5, 5, 1), np.uint8)
    game[0, 2, 1] = 1  # row 2, column 1
    seen = np.argwhere(view.move_pixels(game)[0, :, :, 0])[0]
    for step in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        row, column = view.in_game(step)
        moved = np.zeros_like(game)
        moved[0, 2 + row, 1 + column] = 1
        np.testing.assert_array_equal(np.argwhere(view.move_pixels(moved)[0, :, :, 0])[0], seen + step)


def test_the_actions_of_procgen_are_turned_as_worked_by_hand():
    mirrored, on_its_head, turned = View(flips_columns=True), View(flips_rows=True), View(is_transposed=True)
    jumper, heist, maze = (SYMMETRIES[f"procgen:{game}"] for game in ("jumper", "heist", "maze"))
    others = [9, 10, 11, 12, 13, 14]
    assert jumper.actions_in_game(mirrored, 15).tolist() == [6, 7, 8, 3, 4, 5, 0, 1, 2, *others]
    assert heist.actions_in_game(on_its_head, 15).tolist() == [2, 1, 0, 5, 4, 3, 8, 7, 6, *others]
    # exchanged rows and columns: right is down, up is left, and so up-right is down-left
    assert heist.actions_in_game(turned, 15).tolist() == [8, 5, 2, 7, 4, 1, 6, 3, 0, *others]
    # in a maze left wins over up and down; of the actions that go left or right the last stands for them
    assert maze.actions_in_game(turned, 15).tolist() == [5, 5, 5, 8, 4, 2, 3, 3, 3, *others]


@pytest.mark.parametrize(
    ("game", "sideways", "updown"), [("minimaze", (1, 2), (3, 4)), ("procgen:maze", (1, 7), (5, 3))]
)
def test_a_maze_moves_its_agent_along_the_axis_that_the_action_says(game, sideways, updown):
    """The real games: an agent that goes left is seen elsewhere in its row, however its maze is shown."""
    mirrored = AugmentedEnv(build_env(game, "0:64", 64, seed=3))
    rng, moved = np.random.default_rng(4), set()
    for _ in range(60):
        action = int(rng.choice(sideways + updown))
        before = mirrored.observe().obs.astype(int)
        mirrored.act(np.full(64, action, np.int32))
        seen = mirrored.observe()
        for env in np.flatnonzero(~seen.first):
            rows, columns = np.nonzero(np.abs(seen.obs[env].astype(int) - before[env]).sum(2))
            if len(rows) > 7 or (game == "minimaze" and len(rows)):  # it moved, and did not only look another way
                wide, high = np.ptp(columns), np.ptp(rows)
                assert (wide > high) if action in sideways else (high > wide)
                moved.add(env * 8 // 64)
    assert moved == set(range(8))


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
    for env in (0, 15):
        bare.play(env, 5)
        half.play(env, 5)
    plain, jumper = bare.observe().obs, SYMMETRIES["procgen:jumper"]
    np.testing.assert_array_equal(seen.obs[0], plain[0])
    np.testing.assert_array_equal(seen.obs[8:], jumper.show(jumper.views[1], plain[8:]))
    assert (seen.level[[0, 15]] == 5).all()


def test_what_the_intrinsic_reward_measures_is_not_mirrored_where_it_is_a_view_of_its_own():
    bare, half = pair("procgen:jumper", full_view=True)
    np.testing.assert_array_equal(half.observe().full, bare.observe().full)
    _, whole = pair("procgen:maze", full_view=True)
    assert whole.observe().full is whole.observe().obs


def test_saved_mirrored_games_go_on_as_they_would_have():
    _, half = pair("procgen:maze")
    rng = np.random.default_rng(2)
    actions = rng.integers(15, size=(60, 16)).astype(np.int32)
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


def test_recolored_games_show_the_six_orders_of_the_colours_in_every_view():
    bare = build_env("procgen:jumper", "0:8", 12, seed=3)
    shown = AugmentedEnv(build_env("procgen:jumper", "0:8", 12, seed=3), mirror=True, recolor=True)
    plain, seen = bare.observe().obs, shown.observe().obs
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    for env, order in enumerate(orders):
        np.testing.assert_array_equal(seen[env], plain[env][..., order])
        turned = SYMMETRIES["procgen:jumper"].show(View(flips_columns=True), plain[6 + env : 7 + env])  # compass kept
        np.testing.assert_array_equal(seen[6 + env], turned[0][..., order])
    action = np.full(12, 8, np.int32)  # up and to the right
    shown.act(action)
    bare.act(np.where(np.arange(12) < 6, 8, 2).astype(np.int32))
    after = bare.observe()
    np.testing.assert_array_equal(shown.observe().obs[5], after.obs[5][..., (2, 1, 0)])
    np.testing.assert_array_equal(shown.observe().reward, after.reward)


def test_colours_alone_are_exchanged_in_any_game_and_change_no_action():
    bare, shown = (build_env("procgen:coinrun", "0:8", 6, seed=3) for _ in range(2))
    shown = AugmentedEnv(shown, mirror=False, recolor=True)
    for action in (7, 8, 2, 4):
        np.testing.assert_array_equal(shown.observe().obs[3], bare.observe().obs[3][..., (1, 2, 0)])
        for env in (bare, shown):
            env.act(np.full(6, action, np.int32))


def test_a_game_without_colours_is_refused():
    with pytest.raises(InputError, match="--recolor is on but gymnasium:CartPole-v1 has no RGB pictures"):
        AugmentedEnv(build_env("gymnasium:CartPole-v1", "0:2", 2), mirror=False, recolor=True)


def test_a_game_without_a_known_mirror_image_is_refused():
    with pytest.raises(InputError, match="--mirror is on but procgen:coinrun has no known symmetry"):
        AugmentedEnv(build_env("procgen:coinrun", "0:2", 2))
    with pytest.raises(InputError, match="cannot be saved; accepted: without hidden and use_generated_assets"):
        AugmentedEnv(build_env("procgen:maze", "0:2", 2, use_generated_assets=True))


@pytest.mark.parametrize("shown", ["mirror", "recolor"])
def test_training_on_mirrored_or_recolored_games_differs_and_resumes_bit_equal(shown, small, tmp_path, equal):
    small.train(tmp_path / "plain", 4)
    small.train(tmp_path / "whole", 4, **{shown: True})
    small.train(tmp_path / "halves", 2, **{shown: True})
    small.train(tmp_path / "halves", 4, resume=True, **{shown: True})
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "halves"))
    assert not equal(small.weights(tmp_path / "whole"), small.weights(tmp_path / "plain"))


@pytest.mark.parametrize("game", ["procgen:maze", "procgen:miner"])
def test_where_the_game_says_its_player_went_is_where_the_view_shows_it(game):
    """The real games' own coordinates (x to the right, y up), turned into each view by hand."""
    num_envs = 64
    env = build_env(game, "0:64", num_envs, seed=3)
    mirrored = AugmentedEnv(env)
    views = SYMMETRIES[game].views
    steps = {1: (0, -1), 7: (0, 1), 5: (-1, 0), 3: (1, 0)}  # (row, column) on the picture
    rng, moved = np.random.default_rng(5), {view: set() for view in views}
    for _ in range(40):
        mirrored.observe()
        before = [env.player_position(game_number) for game_number in range(num_envs)]
        action = rng.choice(list(steps), size=num_envs).astype(np.int32)
        mirrored.act(action)
        seen = mirrored.observe()
        for number in np.flatnonzero(~seen.first).tolist():
            after, view = env.player_position(number), views[number * len(views) // num_envs]
            row, column = before[number].y - after.y, after.x - before[number].x  # in the game
            if view.is_transposed:
                row, column = column, row
            row, column = -row if view.flips_rows else row, -column if view.flips_columns else column
            if (row, column) != (0, 0):
                went = (int(np.sign(row)), int(np.sign(column)))
                assert went == steps[int(action[number])]
                moved[view].add(went)
    assert all(len(ways) == 4 for ways in moved.values())
