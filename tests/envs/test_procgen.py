"""ProcGen behind VecEnv: reference frames and levels, chosen levels, exact snapshots."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expgen
from expgen.envs.levels import LevelSet
from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.envs.procgen import EXPLORATION_LEVELS, GAMES, MODES, ProcgenConfig
from expgen.envs.procgen_env import library_range
from expgen.envs.vec_env import LevelControl, Snapshots, VecEnv
from expgen.errors import InputError

pytestmark = [pytest.mark.procgen, pytest.mark.skipif(not is_installed(), reason="no ProcGen library")]

ROOT = Path(expgen.__file__).parents[1]
OFFLINE = ROOT / ".offline"  # another build of the library, optional
FORCE_RESET = -1
FINGERPRINTS = {  # SHA-1 of the first frame, easy mode; equal in both builds of 0.10.7
    ("maze", 0): "1ce0653fa4f2",
    ("maze", 201): "658ecb3b87d4",
    ("heist", 0): "e1b7dc8ab629",
    ("heist", 201): "0323a5792e7c",
    ("jumper", 0): "730d8d464fb1",
    ("jumper", 201): "ee49dc222547",
    ("miner", 0): "2d61992698ba",
    ("miner", 201): "88aabc932573",
}


def make(
    game: str, levels: Any = 200, num_envs: int = 4, seed: int = 0, threads: int = 0, **options: Any
) -> Any:  # Any: the tests also use optional protocols
    return make_env(f"procgen:{game}", levels, num_envs, seed, threads, **options)


def walk(env: VecEnv, num_steps: int, seed: int = 0) -> list[np.ndarray]:
    """Return the observations of `num_steps` random steps, including the one before them; arrays [1 + T, N, ...]."""
    rng = np.random.default_rng(seed)
    seen = [[array.copy() for array in env.observe()]]
    for _ in range(num_steps):
        env.act(rng.integers(15, size=env.num_envs))
        seen.append([array.copy() for array in env.observe()])
    return [np.stack(arrays) for arrays in zip(*seen)]


def same(walk_a: Iterable[np.ndarray], walk_b: Iterable[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(walk_a, walk_b))


def level_draws(env: VecEnv, num_draws: int) -> np.ndarray:
    """Return the levels that each env draws when every episode ends after one step; [N, num_draws]."""
    levels = [env.observe().level.copy()]
    for _ in range(num_draws - 1):
        env.act(np.full(env.num_envs, FORCE_RESET))
        levels.append(env.observe().level.copy())
    return np.stack(levels, 1)


def fingerprint(game: str, level: int) -> str:
    obs = make(game, range(level, level + 1), num_envs=1).observe().obs
    return hashlib.sha1(obs.tobytes()).hexdigest()[:12]


@pytest.mark.parametrize(("game", "level"), FINGERPRINTS)
def test_procgen_first_frames_match_reference(game: str, level: int) -> None:
    assert fingerprint(game, level) == FINGERPRINTS[game, level]


@pytest.mark.skipif(not OFFLINE.exists(), reason="no .offline folder")
def test_procgen_offline_build_passes_the_same_tests() -> None:
    env = {**os.environ, "EXPGEN_PROCGEN": str(OFFLINE), "LD_LIBRARY_PATH": str(OFFLINE / "lib")}
    chosen = "first_frames or level_draws or later_draws or (fruitbot and (continues_exactly or single_level))"
    command = [sys.executable, "-m", "pytest", "-q", __file__, "-k", chosen]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout


def test_procgen_level_draws_match_reference() -> None:
    first = [[71, 165, 125, 72, 126], [106, 10, 4, 13, 169], [137, 73, 37, 19, 115], [26, 83, 117, 110, 37]]
    assert level_draws(make("maze"), 5).tolist() == first
    second = [[380, 220, 256], [368, 229, 296], [277, 305, 245], [387, 204, 389]]
    assert level_draws(make("maze", "201:200", seed=3), 3).tolist() == second


@pytest.mark.parametrize("game", GAMES)
def test_procgen_steps_depend_on_seed_and_not_on_threads(game: str) -> None:
    alone, threaded = walk(make(game), 30), walk(make(game, threads=2), 30)
    obs, full, _, first, _, solved, _ = alone
    assert same(alone, threaded) and np.array_equal(obs, full)
    assert first[0].all() and not solved[~first].any()
    assert not np.array_equal(obs[0], obs[-1])


def test_procgen_reuses_its_observation_buffers() -> None:
    env = make("maze", threads=1)
    seen = env.observe()
    env.act(np.full(4, 7, np.int64))
    assert env.observe() is seen and seen.full is seen.obs and env.observe() is seen
    assert seen.obs.dtype == env.spec.obs_dtype and seen.obs.shape == (4, *env.spec.obs_shape) == (4, 64, 64, 3)
    assert [array.dtype for array in seen[2:]] == [np.float32, bool, np.int32, bool, bool]


def test_procgen_rejects_actions_of_wrong_shape_or_type() -> None:
    env = make("maze")
    with pytest.raises(ValueError, match="accepted"):
        env.act(np.zeros(1, np.int32))
    with pytest.raises(TypeError):
        env.act(np.zeros(4))


def test_procgen_act_without_observe_loses_no_step() -> None:
    once, twice = make("coinrun", threads=2), make("coinrun", threads=2)
    for action in (7, 8, 5):
        once.act(np.full(4, action))
        once.observe()
        twice.act(np.full(4, action))
    assert same(once.observe(), twice.observe())


def test_procgen_plays_only_its_levels() -> None:
    assert set(level_draws(make("maze", "1000:3"), 20).flat) == {1000, 1001, 1002}
    assert set(level_draws(make("maze", [3, 7, 2000]), 20).flat) == {3, 7, 2000}
    assert level_draws(make("maze", "all"), 5).max() > 10**6


def test_procgen_replacement_levels_depend_on_seed_and_are_uniform() -> None:
    levels = LevelSet((0, 1, 5))
    draws = level_draws(make("maze", levels, num_envs=8), 50)
    assert np.array_equal(draws[:, :5], level_draws(make("maze", levels, num_envs=8), 5))
    assert not np.array_equal(draws[:, :5], level_draws(make("maze", levels, num_envs=8, seed=1), 5))
    counts = np.array([(draws == level).sum() for level in levels.seeds])
    assert (abs(counts / draws.size - 1 / 3) < 4 * np.sqrt(2 / 9 / draws.size)).all()


def test_procgen_never_plays_excluded_levels() -> None:
    free = level_draws(make("maze", "all"), 4)
    excluded = tuple(free[:2, 1:3].ravel().tolist())
    draws = level_draws(make("maze", LevelSet(None, excluded)), 4)
    assert not np.isin(draws, excluded).any()
    assert np.array_equal(draws != free, np.isin(free, excluded))


@pytest.mark.parametrize("game", GAMES)
def test_restored_procgen_game_continues_exactly(game: str) -> None:
    env = make(game, [*range(50), 60])
    walk(env, 20)
    state = env.save()
    future = walk(env, 50, seed=1)
    env.restore(state)
    assert same(future, walk(env, 50, seed=1))
    other = make(game, [*range(50), 60], threads=2)
    other.restore(state)
    assert same(future, walk(other, 50, seed=1))


def test_procgen_states_are_small_arrays_and_validated() -> None:
    env = make("maze")
    state = env.save()
    assert isinstance(env, LevelControl) and isinstance(env, Snapshots)
    assert all(array.dtype in (np.uint8, np.int64, bool) for array in state.values())
    assert state["length"].max() < 40_000
    with pytest.raises(InputError, match="accepted: 3"):
        make("maze", num_envs=3).restore(state)
    with pytest.raises(InputError, match="not a saved heist game"):
        make("heist").restore(state)


@pytest.mark.parametrize("game", GAMES)
def test_procgen_chosen_level_matches_single_level_env(game: str) -> None:
    env = make(game, num_envs=2)
    walk(env, 15)
    for level in (3, 10**9):
        alone = make(game, range(level, level + 1), num_envs=2)
        env.play(0, level)
        env.play(1, level)
        seen, lone = walk(env, 40, seed=level), walk(alone, 40, seed=level)
        for column in range(2):
            obs, _, reward, first, _, solved, _ = (array[:, column] for array in seen)
            end = 1 + next(iter(np.flatnonzero(first[1:])), 40)  # from here on each draws its own levels
            assert np.array_equal(obs[:end], lone[0][:end, column])
            assert np.array_equal(reward[1 : end + 1], lone[2][1 : end + 1, column])
            assert np.array_equal(first[: end + 1], lone[3][: end + 1, column])
            assert np.array_equal(solved[1 : end + 1], lone[5][1 : end + 1, column])


def test_procgen_reports_time_outs_but_not_deaths_as_timed_out() -> None:
    maze, leaper, still, up = make("maze", num_envs=2), make("leaper", num_envs=16), 4, 5
    for step in range(1, 501):
        maze.act(np.full(2, still))
        assert (maze.observe().timed_out == (step == 500)).all()
    deaths = 0
    for _ in range(60):
        leaper.act(np.full(16, up))
        seen = leaper.observe()
        deaths += (seen.first & ~seen.solved).sum()
        assert not seen.timed_out.any()
    assert deaths


def test_restored_procgen_game_times_out_at_the_same_step() -> None:
    env, other = make("maze", num_envs=2), make("maze", num_envs=2, seed=1)
    walk(env, 5)
    env.play(1, 7)
    other.restore(env.save())
    env.act(np.full(2, FORCE_RESET))
    for step in range(1, 501):
        other.act(np.full(2, 4))
        timed_out = other.observe().timed_out
        assert timed_out.tolist() == [step == 495, step == 500]
        if timed_out.any():
            env.restore(other.save())
            assert env.observe().timed_out.tolist() == timed_out.tolist()


def test_procgen_restores_states_without_time_out_fields() -> None:
    env = make("maze", num_envs=2)
    state = {name: array for name, array in env.save().items() if name not in ("elapsed", "timed_out")}
    env.restore(state)
    assert not env.observe().timed_out.any()


def test_procgen_chosen_level_does_not_change_later_draws() -> None:
    free, env = level_draws(make("maze"), 6), make("maze")
    seen = env.observe()
    env.play(2, 9999)
    assert seen.level.tolist() == [*free[:2, 0], 9999, free[3, 0]] and seen.first.all()
    assert np.array_equal(level_draws(env, 6)[:, 1:], free[:, 1:])


def test_procgen_play_keeps_result_of_previous_episode() -> None:
    env, rng = make("maze", num_envs=16), np.random.default_rng(0)
    while not env.observe().solved.any():
        env.act(rng.integers(15, size=16))
    seen = env.observe()
    solver = int(seen.solved.argmax())
    before = [array.copy() for array in seen]
    env.play(solver, 5)
    other = 0 if solver else 1
    env.play(other, 5)  # in the middle of an episode
    assert seen.reward[solver] == 10 and seen.level[solver] == 5 and seen.first[other]
    assert np.array_equal(seen.reward, before[2]) and np.array_equal(seen.solved, before[5])
    state = env.save()
    env.act(np.zeros(16, np.int32))
    env.observe()
    env.restore(state)
    assert np.array_equal(seen.reward, before[2]) and np.array_equal(seen.solved, before[5])


@pytest.mark.parametrize("mode", MODES)
def test_procgen_modes_start_in_all_their_games(mode: str) -> None:
    for game in MODES[mode][1]:
        levels = "all" if mode == "exploration" else 20
        env = make(game, levels, num_envs=1, distribution_mode=mode)
        env.act(np.zeros(1, np.int32))
        assert env.observe().obs.any()
        assert mode != "exploration" or env.observe().level[0] == EXPLORATION_LEVELS[game]


@pytest.mark.parametrize(
    ("game", "options", "message"),
    [
        ("pong", {}, "GAME is 'pong'; accepted: bigfish"),
        ("maze", {"distribution_mode": "brutal"}, "distribution_mode is 'brutal'; accepted: easy, hard"),
        ("maze", {"distribution_mode": "extreme"}, "accepted: chaser, dodgeball, leaper, starpilot"),
        ("maze", {"distribution_mode": "exploration"}, "levels is 0:200 in exploration mode"),
        ("maze", {"use_backgrounds": "no"}, "use_backgrounds is 'no'; accepted: a value of type bool"),
        ("maze", {"seed": -1}, "seed is -1"),
        ("maze", {"threads": -1}, "threads is -1"),
        ("heist", {"hidden": True}, "accepted: True for maze only"),
        ("maze", {"levels": [1, 5], "use_generated_assets": True}, "levels has gaps"),
    ],
)
def test_procgen_rejects_invalid_games_modes_and_options(game: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(game, **options)


def test_generated_assets_disable_level_control_and_snapshots() -> None:
    env = make("maze", use_generated_assets=True)
    assert not isinstance(env, LevelControl) and not isinstance(env, Snapshots)
    with pytest.raises(InputError, match="level is -1"):
        make("maze").play(0, -1)


def test_generated_assets_support_excluding_the_first_levels() -> None:
    assert library_range(LevelSet(None, range(128)), can_replace=False) == (
        {"start_level": 128, "num_levels": 2**31 - 1 - 128},
        False,
    )
    draws = level_draws(make("maze", LevelSet(None, range(128)), use_generated_assets=True), 3)
    assert draws.min() >= 128


@pytest.mark.parametrize(
    "option", ["use_monochrome_assets", "restrict_themes", "use_generated_assets", "paint_vel_info", "use_backgrounds"]
)
def test_procgen_options_change_the_picture(option: str) -> None:
    value = not getattr(ProcgenConfig("coinrun"), option)
    plain, changed = (make("coinrun", num_envs=8, **options).observe().obs for options in ({}, {option: value}))
    assert not np.array_equal(plain, changed)


def test_sequential_levels_continue_within_an_episode() -> None:
    env, rng = make("maze", 200, num_envs=16, use_sequential_levels=True), np.random.default_rng(0)
    start = env.observe().level.copy()
    while not (env.observe().level > 200).any():
        env.act(rng.integers(15, size=16))
    seen = env.observe()
    winner = int(seen.level.argmax())
    assert seen.level[winner] == start[winner] + 997 and seen.reward[winner] == 10
    assert not seen.first[winner] and not seen.solved[winner]
