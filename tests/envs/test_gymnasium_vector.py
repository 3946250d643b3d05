"""GymnasiumVectorEnv and GymnasiumSingleEnv: same games as make_env, reset, and invalid arguments."""

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from expgen.envs.gymnasium_vector import GymnasiumVectorEnv
from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.envs.procgen import GAMES
from expgen.errors import InputError

needs_procgen = [pytest.mark.procgen, pytest.mark.skipif(not is_installed(), reason="no ProcGen library")]
SMALL = {"max_cells": 2, "time_limit": 7}


def maze(num_envs: int = 3, **how: Any) -> Any:
    return gymnasium.make_vec("expgen/minimaze", num_envs=num_envs, **{"levels": 20, **SMALL, **how})


FIRST = ["import gymnasium, expgen", "import expgen, gymnasium", "import expgen.errors"]
FIRST += ["import expgen, importlib.util; importlib.util.find_spec('gymnasium')"]  # looks for it without importing it


@pytest.mark.parametrize("first", FIRST)
def test_gymnasium_ids_are_registered_in_any_import_order(first: str) -> None:
    code = f"{first}; import gymnasium; print(*sorted(id for id in gymnasium.registry if id.startswith('expgen/')))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert found == sorted(f"expgen/{game}" for game in (*GAMES, "minimaze"))


def test_importing_expgen_does_not_import_gymnasium() -> None:
    subprocess.run([sys.executable, "-c", "import sys, expgen; assert 'gymnasium' not in sys.modules"], check=True)


@pytest.mark.parametrize("game", ["minimaze", pytest.param("maze", marks=needs_procgen)])
def test_gymnasium_vector_env_matches_make_env(game: str) -> None:
    how: dict[str, Any] = SMALL if game == "minimaze" else {}
    env = gymnasium.make_vec(f"expgen/{game}", num_envs=3, levels=range(5, 9), seed=2, **how)
    behind = make_env("minimaze" if game == "minimaze" else f"procgen:{game}", range(5, 9), 3, 2, **how)
    obs, info = env.reset(seed=2)
    np.testing.assert_array_equal(obs, behind.observe().obs)
    kept, ends = [obs.copy()], 0
    given = [obs]
    for action in np.random.default_rng(0).integers(behind.spec.num_actions, size=(40, 3)):
        behind.act(action.astype(np.int32))
        seen = behind.observe()
        obs, reward, terminated, truncated, info = env.step(action)
        np.testing.assert_array_equal(obs, seen.obs)
        np.testing.assert_array_equal(reward, seen.reward)
        np.testing.assert_array_equal(terminated | truncated, seen.first)
        np.testing.assert_array_equal(truncated, seen.timed_out)
        np.testing.assert_array_equal(info["level"], seen.level)
        np.testing.assert_array_equal(info["solved"], seen.solved)
        assert obs in env.observation_space and set(info["level"].tolist()) <= set(range(5, 9))
        kept.append(obs.copy())
        given.append(obs)
        ends += int(seen.first.sum())
    np.testing.assert_array_equal(np.stack(given), np.stack(kept))  # later steps leave earlier observations alone
    assert ends > 0 or game == "maze"
    env.close()


def test_record_episode_statistics_wrapper_works() -> None:
    env = RecordEpisodeStatistics(maze())
    assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    env.reset(seed=0)
    lengths = []
    for _ in range(30):
        _, _, terminated, truncated, info = env.step(np.zeros(3, dtype=int))  # the agents stay: every episode times out
        assert not terminated.any()
        lengths += info["episode"]["l"][truncated].tolist() if truncated.any() else []
    assert lengths == [7] * 12


def test_reset_with_same_seed_repeats_levels_and_without_seed_changes_them() -> None:
    env = maze(num_envs=8, levels="all")
    one, again, other = (env.reset(seed=seed)[1]["level"].tolist() for seed in (4, 4, 5))
    assert one == again != other
    env.step(np.zeros(8, dtype=int))
    assert env.reset(seed=4)[1]["level"].tolist() == one
    env.step(np.zeros(8, dtype=int))
    begun = env.reset()[1]["level"].tolist()
    assert begun not in (one, other)
    assert env.reset()[1]["level"].tolist() == begun  # no step since the last reset
    assert env.reset(seed=np.int64(4))[1]["level"].tolist() == one
    with pytest.raises(InputError, match=r"seed is 1\.5; accepted: a whole number"):
        env.reset(seed=1.5)


def test_reset_option_levels_chooses_levels() -> None:
    env, other = maze(), maze()
    obs, info = env.reset(seed=0, options={"levels": [7, 900, 7]})
    assert info["level"].tolist() == [7, 900, 7]
    np.testing.assert_array_equal(obs[0], obs[2])
    np.testing.assert_array_equal(other.reset(seed=3, options={"levels": [900] * 3})[0][0], obs[1])
    for _ in range(7):
        info = env.step(np.zeros(3, dtype=int))[4]
    assert max(info["level"]) < 20  # later levels come from the set


@pytest.mark.parametrize("game", ["jumper"])
@needs_procgen[0]
@needs_procgen[1]
def test_info_has_full_view_when_requested(game: str) -> None:
    env = gymnasium.make_vec(f"expgen/{game}", num_envs=2, levels=3, full_view=True)
    obs, info = env.reset()
    assert info["full"].shape == obs.shape and (info["full"] != obs).any()
    assert "full" not in maze().reset()[1]


def test_gymnasium_vector_env_repr() -> None:
    assert repr(maze()) == "GymnasiumVectorEnv('minimaze', 3 games, levels 0:20)"


def stepped(actions: Any) -> None:
    env = maze()
    env.reset()
    env.step(actions)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: maze(num_envs=0), "num_envs is 0; accepted: 1 to 65536"),
        (lambda: maze(levels="few"), "levels is 'few'; accepted: COUNT, START:COUNT, a list A,B,C, or all"),
        (lambda: maze(colour="red"), "option 'colour' is unknown; accepted: min_cells, max_cells"),
        (lambda: maze(max_cells="big"), "max_cells is 'big'; accepted: a value of type int"),
        (lambda: maze(max_cells=1), "max_cells is 1; accepted: 2 to 100|min_cells is 2; accepted"),
        (lambda: GymnasiumVectorEnv("chess"), "--env is 'chess'"),
        (lambda: maze().reset(seed=-1), "seed is -1; accepted: 0 to 2147483647"),
        (lambda: maze().reset(options={"level": 3}), "option of reset is 'level'; accepted: levels"),
        (lambda: maze().reset(options={"levels": [1, 2]}), r"levels is \[1, 2\]; accepted: 3 whole numbers"),
        (lambda: maze().reset(options={"levels": 4}), "levels is 4; accepted: 3 whole numbers"),
        (lambda: maze().reset(options={"levels": [1, 2, -3]}), "levels is -3; accepted: 0 to"),
        (lambda: maze().reset(options={"levels": ["a"] * 3}), "accepted: 3 whole numbers"),
        (lambda: stepped([0, 1]), r"actions have shape \(2,\), type int64; accepted: 3 whole numbers"),
        (lambda: stepped(0), r"actions have shape \(\), type int64"),
        (lambda: stepped([0.0, 1.0, 2.0]), r"actions have shape \(3,\), type float64"),
        (lambda: stepped([0, 1, 5]), "actions are 0 to 5; accepted: 0 to 4"),
        (lambda: stepped([0, 1, -1]), "actions are -1 to 1; accepted: 0 to 4"),
    ],
)
def test_gymnasium_vector_env_rejects_invalid_arguments(use: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        use()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("game", ["minimaze", pytest.param("maze", marks=needs_procgen)])
def test_gymnasium_single_env_matches_vector_env(game: str) -> None:
    how: dict[str, Any] = SMALL if game == "minimaze" else {}
    one = gymnasium.make(f"expgen/{game}", levels=4, **how)
    many = gymnasium.make_vec(f"expgen/{game}", num_envs=1, levels=4, **how)
    shown, (batch, _) = one.reset(seed=1)[0], many.reset(seed=1)
    for action in np.random.default_rng(1).integers(one.action_space.n, size=40).tolist():
        np.testing.assert_array_equal(shown, batch[0])
        before = shown
        batch, reward, terminated, truncated, infos = many.step(np.array([action]))
        shown, *rest, info = one.step(action)
        assert rest == [reward[0], terminated[0], truncated[0]] and info["solved"] == infos["solved"][0]
        if terminated[0] or truncated[0]:
            np.testing.assert_array_equal(shown, before)  # the last frame is not drawn
            shown, info = one.reset()
            assert info["level"] == infos["level"][0]


def test_gymnasium_single_env_passes_env_checker_and_plays_chosen_level() -> None:
    from gymnasium.utils.env_checker import check_env

    env = gymnasium.make("expgen/minimaze", levels=4, **SMALL)
    check_env(env.unwrapped, skip_render_check=True)
    assert env.reset(options={"level": 9})[1]["level"] == 9
    assert repr(env.unwrapped) == "GymnasiumSingleEnv('minimaze', levels 0:4)"
    for use, message in (
        (lambda: gymnasium.make("expgen/minimaze", num_envs=2), "num_envs is 2; accepted: 1, or gymnasium.make_vec"),
        (lambda: env.unwrapped.reset(options={"levels": [9]}), "option of reset is 'levels'; accepted: level"),
        (lambda: gymnasium.make("expgen/minimaze").unwrapped.step(0), "step was called before reset"),
        (lambda: env.unwrapped.step(99), "actions are 99 to 99; accepted: 0 to 4"),
    ):
        with pytest.raises(InputError, match=message):
            use()
