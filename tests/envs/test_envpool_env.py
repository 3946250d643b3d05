"""The EnvPool adapter against EnvPool stepped by hand; ProcGen tasks only if their Qt library is installed."""

import sys

import numpy as np
import pytest

from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.envs.vec_env import VecEnv
from expgen.errors import InputError

envpool = pytest.importorskip("envpool", reason="EnvPool is missing: pip install 'expgen[envpool]'")


def procgen_import_error() -> str:
    try:
        envpool.make_spec("MazeEasy-v0")
    except ImportError as error:
        return str(error)
    return ""


PROCGEN_ERROR = procgen_import_error()
needs_procgen = pytest.mark.skipif(bool(PROCGEN_ERROR), reason=PROCGEN_ERROR or "loads")


def random_steps(env: VecEnv, num_steps: int) -> list[tuple[np.ndarray, ...]]:
    """Return copies of the observations of random play, starting with the initial one."""
    rng = np.random.default_rng(0)
    seen = [tuple(part.copy() for part in env.observe())]
    for _ in range(num_steps):
        env.act(rng.integers(env.spec.num_actions, size=env.num_envs).astype(np.int32))
        seen.append(tuple(part.copy() for part in env.observe()))
    return seen


def test_envpool_env_matches_envpool_stepped_by_hand() -> None:
    env = make_env("envpool:CartPole-v1", "all", num_envs=3, seed=5, threads=2)
    assert (env.spec.obs_shape, env.spec.obs_dtype, env.spec.num_actions) == ((4,), "float32", 2)
    seeds = (np.random.SeedSequence(5).generate_state(3) >> 1).tolist()
    plain = [envpool.make_gymnasium("CartPole-v1", num_envs=1, seed=[seed]) for seed in seeds]
    rng = np.random.default_rng(0)
    seen = env.observe()
    assert seen.first.all() and not seen.reward.any() and not seen.solved.any()
    for index, one in enumerate(plain):
        assert (seen.obs[index] == one.reset()[0][0]).all()
    num_ended = 0
    for _ in range(100):
        action = rng.integers(2, size=3).astype(np.int32)
        env.act(action)
        seen = env.observe()
        for index, one in enumerate(plain):
            obs, reward, terminated, truncated, _ = one.step(action[index : index + 1])
            assert seen.reward[index] == reward[0]
            assert seen.first[index] == (terminated | truncated)[0]
            if seen.first[index]:  # EnvPool spends a step of any action on the restart
                obs = one.step(np.zeros(1, dtype=np.int32))[0]
                num_ended += 1
            assert (seen.obs[index] == obs[0]).all()
    assert num_ended > 5
    assert (seen.level == -1).all()
    env.close()
    env.close()


def test_envpool_env_can_be_closed_during_a_step() -> None:
    env = make_env("envpool:CartPole-v1", "all", num_envs=4)
    env.act(np.ones(4, dtype=np.int32))
    env.close()


def test_envpool_games_depend_on_the_seed_and_differ_between_neighbouring_seeds() -> None:
    def start(seed: int) -> list[bytes]:
        return [row.tobytes() for row in make_env("envpool:CartPole-v1", "all", num_envs=8, seed=seed).observe().obs]

    assert start(0) == start(0)
    assert not set(start(0)) & set(start(1))


def test_envpool_discrete_observations_become_one_hot() -> None:
    seen = make_env("envpool:FrozenLake-v1", "all", num_envs=3).observe()
    assert seen.obs.shape == (3, 16)
    assert seen.obs.argmax(axis=1).tolist() == [0, 0, 0] and seen.obs.sum() == 3


def test_envpool_task_without_levels_rejects_level_sets() -> None:
    whole = LevelSet.parse("all")
    for levels in (LevelSet.parse(200), whole.without(LevelSet.parse(200))):
        with pytest.raises(InputError, match="accepted by 'envpool:CartPole-v1': all"):
            make_env("envpool:CartPole-v1", levels, num_envs=1)


@pytest.mark.parametrize(
    ("task", "options", "said"),
    [
        ("NoSuchTask-v0", {}, "list_all_envs"),
        ("CartPole-v1", {"wings": 2}, "wings"),
        ("CartPole-v1", {"batch_size": 2}, "batch_size"),
        ("Pendulum-v1", {}, "Discrete actions"),
        ("Catch-v0", {}, "Box"),
    ],
)
def test_envpool_rejects_unknown_tasks_options_and_spaces(task: str, options: dict[str, int], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        make_env(f"envpool:{task}", "all", num_envs=2, **options)
    assert task in str(caught.value) and "\n" not in str(caught.value)


def test_missing_envpool_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(InputError, match=r"pip install 'expgen\[envpool\]'"):
        make_env("envpool:CartPole-v1")


@pytest.mark.skipif(not PROCGEN_ERROR, reason="EnvPool's ProcGen loads here")
def test_envpool_error_names_missing_system_library() -> None:
    with pytest.raises(InputError, match=r"Qt 5.*; accepted: procgen:GAME, or a machine with these libraries"):
        make_env("envpool:MazeEasy-v0")


@needs_procgen
def test_envpool_procgen_plays_and_reports_levels_of_the_set() -> None:
    seen = random_steps(make_env("envpool:MazeEasy-v0", "20:3", num_envs=16, threads=2), 300)
    assert seen[0][0].shape == (16, 64, 64, 3) and seen[0][0].dtype == np.uint8
    levels = np.stack([step[4] for step in seen])  # [T, N]
    first = np.stack([step[3] for step in seen])
    solved, reward = np.stack([step[5] for step in seen]), np.stack([step[2] for step in seen])
    assert set(levels.ravel().tolist()) == {20, 21, 22}
    assert (first[1:] | (levels[1:] == levels[:-1])).all()  # a level changes only where an episode opens
    assert solved.any() and (solved == (reward > 0)).all()  # Maze pays at the goal alone


@needs_procgen
def test_envpool_procgen_first_frame_depends_only_on_the_level() -> None:
    seen = make_env("envpool:MazeEasy-v0", "20:1", num_envs=3).observe()
    other = make_env("envpool:MazeEasy-v0", "20:1", num_envs=1, seed=9).observe()
    assert (seen.obs == other.obs[0]).all()


@needs_procgen
def test_envpool_procgen_rejects_level_sets_with_gaps() -> None:
    with pytest.raises(InputError, match="START:COUNT"):
        make_env("envpool:MazeEasy-v0", (3, 7, 9), num_envs=1)


@needs_procgen
def test_envpool_procgen_never_plays_excluded_levels() -> None:
    """Exclude the levels that the seed draws first, so that each game has to draw again."""
    drawn = make_env("envpool:MazeEasy-v0", "all", num_envs=4, seed=2).observe().level.tolist()
    others = LevelSet.parse("all").without(LevelSet.parse(drawn))
    again = make_env("envpool:MazeEasy-v0", others, num_envs=4, seed=2).observe().level.tolist()
    assert not set(drawn) & set(again)
