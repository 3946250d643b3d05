"""AugmentedEnv: views, actions, and whether the views are symmetries of the games."""

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
def test_each_view_shows_an_equal_share_of_the_games(game):
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


def test_maze_has_eight_distinct_views():
    picture = np.arange(27, dtype=np.uint8).reshape(1, 3, 3, 3)
    shown = {view.move_pixels(picture).tobytes() for view in ALL_VIEWS}
    assert len(shown) == len(ALL_VIEWS) == 8
    assert ALL_VIEWS[0] == View()


@pytest.mark.parametrize("view", ALL_VIEWS)
def test_direction_in_view_maps_to_direction_in_game(view):
    game = np.zeros((1, 5, 5, 1), np.uint8)
    game[0, 2, 1] = 1  # row 2, column 1
    seen = np.argwhere(view.move_pixels(game)[0, :, :, 0])[0]
    for step in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        row, column = view.in_game(step)
        moved = np.zeros_like(game)
        moved[0, 2 + row, 1 + column] = 1
        np.testing.assert_array_equal(np.argwhere(view.move_pixels(moved)[0, :, :, 0])[0], seen + step)


def test_procgen_actions_in_views_match_hand_computed_tables():
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
def test_agent_moves_along_the_axis_of_the_action_in_every_view(game, sideways, updown):
    """In the real games: an agent that moves left changes pixels of its row, in every view."""
    mirrored = AugmentedEnv(build_env(game, "0:64", 64, seed=3))
    rng, moved = np.random.default_rng(4), set()
    for _ in range(60):
        action = int(rng.choice(sideways + updown))
        before = mirrored.observe().obs.astype(int)
        mirrored.act(np.full(64, action, np.int32))
        seen = mirrored.observe()
        for env in np.flatnonzero(~seen.first):
            rows, columns = np.nonzero(np.abs(seen.obs[env].astype(int) - before[env]).sum(2))
            if len(rows) > 7 or (game == "minimaze" and len(rows)):  # it moved, and did not only turn
                wide, high = np.ptp(columns), np.ptp(rows)
                assert (wide > high) if action in sideways else (high > wide)
                moved.add(env * 8 // 64)
    assert moved == set(range(8))


def test_jumper_compass_is_mirrored_in_place():
    bare, half = pair("procgen:jumper", "0:200", 64)
    plain, seen = bare.observe().obs[32:].astype(int), half.observe().obs[32:].astype(int)
    grey = np.abs(plain[:, 9, 47] - (168, 166, 158)).sum(-1) < 40  # the compass's rim, left of its middle
    assert grey.mean() > 0.8
    np.testing.assert_array_equal(seen[:, 1:17, 54], plain[:, 1:17, 54])  # the middle column
    np.testing.assert_array_equal(seen[:, 9, 47:62], plain[:, 9, 61:46:-1])
    np.testing.assert_array_equal(seen[:, 18, 46:], plain[:, 18, 46:])  # the bar of distance
    np.testing.assert_array_equal(seen[:, 30:], plain[:, 30:, ::-1])


def test_play_shows_the_level_in_the_view_of_its_game():
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


def test_separate_full_view_is_not_mirrored():
    bare, half = pair("procgen:jumper", full_view=True)
    np.testing.assert_array_equal(half.observe().full, bare.observe().full)
    _, whole = pair("procgen:maze", full_view=True)
    assert whole.observe().full is whole.observe().obs


def test_restored_mirrored_games_continue_exactly():
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


def test_recolor_shows_six_channel_orders_in_every_view():
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


def test_recolor_without_mirror_supports_every_rgb_game_and_keeps_actions():
    bare, shown = (build_env("procgen:coinrun", "0:8", 6, seed=3) for _ in range(2))
    shown = AugmentedEnv(shown, mirror=False, recolor=True)
    for action in (7, 8, 2, 4):
        np.testing.assert_array_equal(shown.observe().obs[3], bare.observe().obs[3][..., (1, 2, 0)])
        for env in (bare, shown):
            env.act(np.full(6, action, np.int32))


def test_recolor_rejects_games_without_rgb_pictures():
    with pytest.raises(InputError, match="--recolor is on but gymnasium:CartPole-v1 has no RGB pictures"):
        AugmentedEnv(build_env("gymnasium:CartPole-v1", "0:2", 2), mirror=False, recolor=True)


def test_mirror_rejects_unsupported_games():
    with pytest.raises(InputError, match="--mirror is on but procgen:coinrun has no known symmetry"):
        AugmentedEnv(build_env("procgen:coinrun", "0:2", 2))
    with pytest.raises(InputError, match="cannot be saved; accepted: without hidden and use_generated_assets"):
        AugmentedEnv(build_env("procgen:maze", "0:2", 2, use_generated_assets=True))


@pytest.mark.parametrize("shown", ["mirror", "recolor"])
def test_training_on_augmented_games_resumes_bit_equal(shown, small, tmp_path, equal):
    small.train(tmp_path / "plain", 4)
    small.train(tmp_path / "whole", 4, **{shown: True})
    small.train(tmp_path / "halves", 2, **{shown: True})
    small.train(tmp_path / "halves", 4, resume=True, **{shown: True})
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "halves"))
    assert not equal(small.weights(tmp_path / "whole"), small.weights(tmp_path / "plain"))


@pytest.mark.parametrize("game", ["procgen:maze", "procgen:miner"])
def test_player_coordinates_move_as_shown_in_every_view(game):
    """Coordinates of the real games (x to the right, y up), converted to each view by hand."""
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
