"""The uncentred twin and the Hidden Maze mask."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.envs.procgen import CENTRED, GAMES, MODES, ProcgenConfig
from expgen.envs.procgen_env import ProcgenEnv
from expgen.envs.vec_env import LevelControl, Observation, Snapshots, VecEnv
from expgen.envs.views import WALL
from expgen.errors import InputError

pytestmark = [pytest.mark.procgen, pytest.mark.skipif(not is_installed(), reason="no ProcGen library")]


def make(game: str, num_envs: int = 2, levels: Any = 50, threads: int = 0, **options: Any) -> Any:
    return make_env(f"procgen:{game}", levels, num_envs, 0, threads, **options)


def steps(*envs: VecEnv, num_steps: int = 40, seed: int = 0) -> Iterator[list[Observation]]:
    """Step all `envs` with the same random actions; yield their observations after every step."""
    rng = np.random.default_rng(seed)
    for _ in range(num_steps):
        action = rng.integers(15, size=envs[0].num_envs)
        for env in envs:
            env.act(action)
        yield [env.observe() for env in envs]


@pytest.mark.parametrize("mode", ["easy", "hard", "extreme", "memory"])
def test_center_agent_changes_only_centred_games(mode: str) -> None:
    for game in MODES[mode][1]:
        views = [make(game, distribution_mode=mode, center_agent=centred) for centred in (True, False)]
        differ = any(not np.array_equal(a.obs, b.obs) for a, b in steps(*views, num_steps=5))
        assert differ == (game in CENTRED), game


@pytest.mark.parametrize("game", sorted(CENTRED))
def test_uncentred_twin_matches_both_environments(game: str) -> None:
    levels = [0, 1, 4]  # a set with gaps: both must draw the same replacements
    twin, centred = make(game, levels=levels, full_view=True, threads=2), make(game, levels=levels)
    uncentred = make(game, levels=levels, center_agent=False)
    for seen, main, full in steps(twin, centred, uncentred, num_steps=120):
        assert np.array_equal(seen.obs, main.obs) and np.array_equal(seen.full, full.obs)
        assert all(np.array_equal(a, b) and np.array_equal(a, c) for a, b, c in zip(seen[2:], main[2:], full[2:]))
    assert not np.array_equal(seen.obs, seen.full)


def test_uncentred_twin_plays_saves_and_restores_both_views() -> None:
    twin, other = make("jumper", full_view=True), make("jumper", full_view=True)
    assert isinstance(twin, LevelControl) and isinstance(twin, Snapshots)
    twin.play(1, 4321)
    alone = make("jumper", levels=range(4321, 4322), center_agent=False).observe()
    assert np.array_equal(twin.observe().full[1], alone.obs[0]) and twin.observe().level[1] == 4321
    other.restore(twin.save())
    for seen, restored in steps(twin, other):
        assert all(np.array_equal(a, b) for a, b in zip(seen, restored))
    twin.close()
    twin.close()


def test_repr_of_uncentred_twin_and_hidden_maze() -> None:
    assert repr(make_env("coinrun", 5, 2, full_view=True)) == "UncentredTwin('procgen:coinrun', 2 games, levels 0:5)"
    assert repr(make_env("maze", 5, 2, hidden=True)) == "HiddenMaze('procgen:maze', 2 games, levels 0:5)"


def test_uncentred_twin_rejects_generated_assets() -> None:
    with pytest.raises(InputError, match="use_generated_assets is True; accepted for r_I in coinrun"):
        make("coinrun", full_view=True, use_generated_assets=True)


@pytest.mark.parametrize("game", [game for game in GAMES if game not in CENTRED])
def test_uncentred_games_have_no_twin(game: str) -> None:
    env = make(game, full_view=True)
    assert isinstance(env, ProcgenEnv) and env.observe().full is env.observe().obs


def test_center_agent_false_needs_no_twin() -> None:
    assert isinstance(make("jumper", full_view=True, center_agent=False), ProcgenEnv)


def test_hidden_maze_shows_only_the_agent() -> None:
    hidden = make("maze", hidden=True, levels=128)
    options = {"use_generated_assets": True, "use_monochrome_assets": True, "restrict_themes": True}
    bare = make("maze", levels=128, use_backgrounds=False, **options)
    implied = ProcgenConfig("maze", use_backgrounds=False, **options)
    assert ProcgenConfig("maze", hidden=True).options() == implied.options()
    for seen, shown in steps(hidden, bare, num_steps=60):
        masked = np.where(shown.obs[..., 1:2] == 255, shown.obs, np.array(WALL, np.uint8))
        assert np.array_equal(seen.obs, masked) and seen.full is seen.obs
        assert hidden.observe() is seen and np.array_equal(seen.obs, masked)
        assert all(np.array_equal(a, b) for a, b in zip(seen[2:], shown[2:]))
        colours = {tuple(colour) for colour in seen.obs.reshape(-1, 3).tolist()}
        assert colours == {WALL, (127, 255, 127)}
    assert len({tuple(colour) for colour in shown.obs.reshape(-1, 3).tolist()}) == 4


def test_hidden_maze_has_no_level_control_and_no_snapshots() -> None:
    env = make("maze", hidden=True)
    assert not isinstance(env, LevelControl) and not isinstance(env, Snapshots)
    env.close()
    env.close()
