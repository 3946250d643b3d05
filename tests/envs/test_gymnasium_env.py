"""The Gymnasium adapter against plain environments stepped by hand."""

from enum import IntEnum
from typing import Any

import gymnasium
import numpy as np
import pytest

from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.envs.vec_env import HasActionNames, LevelControl, Snapshots
from expgen.errors import InputError

LEVELS = (3, 7, 11)


class Corridor(gymnasium.Env):
    """Four cells, the goal at a side that the level decides; action 6 walks right, 5 left. A grey picture of it."""

    def __init__(self, tells_success: bool | None = None, observation: Any = None) -> None:
        picture = gymnasium.spaces.Box(0, 255, (2, 4, 3), np.uint8)
        self.observation_space = picture if observation is None else observation
        self.action_space = gymnasium.spaces.Discrete(2, start=5)
        self.tells_success = tells_success

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.shade = int(self.np_random.integers(1, 255))
        self.cell = 1
        return self._picture(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.cell += 1 if action == 6 else -1
        has_ended = self.cell in (0, 3)
        info = {"is_success": self.tells_success} if has_ended and self.tells_success is not None else {}
        return self._picture(), float(self.cell == 3), has_ended, False, info

    def _picture(self) -> np.ndarray:
        picture = np.zeros((2, 4, 3), dtype=np.uint8)
        picture[:, self.cell] = self.shade
        return picture


@pytest.fixture(scope="module", autouse=True)
def corridor() -> Any:
    gymnasium.register("Corridor-v0", Corridor, max_episode_steps=5)
    yield
    gymnasium.registry.pop("Corridor-v0")


def test_gymnasium_env_matches_environments_stepped_by_hand() -> None:
    rng = np.random.default_rng(0)
    env = make_env("gymnasium:CartPole-v1", LEVELS, num_envs=3, seed=1)
    assert (env.spec.obs_shape, env.spec.obs_dtype, env.spec.num_actions) == ((4,), "float32", 2)
    plain = [gymnasium.make("CartPole-v1") for _ in range(3)]
    seen = env.observe()
    assert seen.first.all() and not seen.solved.any() and not seen.reward.any()
    for index, one in enumerate(plain):
        assert (seen.obs[index] == one.reset(seed=int(seen.level[index]))[0]).all()
    num_ended = 0
    for _ in range(200):
        action = rng.integers(2, size=3).astype(np.int32)
        env.act(action)
        seen = env.observe()
        for index, one in enumerate(plain):
            obs, reward, terminated, truncated, _ = one.step(int(action[index]))
            assert seen.reward[index] == reward
            assert seen.first[index] == (terminated or truncated)
            if seen.first[index]:  # the reward is the old episode's, the observation the new one's
                obs, _ = one.reset(seed=int(seen.level[index]))
                num_ended += 1
            assert (seen.obs[index] == obs).all()
            assert seen.level[index] in LEVELS
    assert num_ended > 10
    assert seen.full is seen.obs
    env.close()
    env.close()


def test_gymnasium_pictures_keep_their_shape_and_actions_start_at_zero() -> None:
    env = make_env("gymnasium:Corridor-v0", LEVELS, num_envs=2)
    assert (env.spec.obs_shape, env.spec.obs_dtype, env.spec.num_actions) == ((2, 4, 3), "uint8", 2)
    seen = env.observe()
    assert (seen.obs[:, 0, :, 0] > 0).tolist() == [[False, True, False, False]] * 2
    env.act(np.array([1, 0], dtype=np.int32))  # right, left
    seen = env.observe()
    assert (seen.obs[0, 0, :, 0] > 0).tolist() == [False, False, True, False]
    assert seen.first.tolist() == [False, True]
    assert not (seen.solved | seen.timed_out).any()  # the left end terminates without reward
    env.act(np.array([1, 1], dtype=np.int32))
    seen = env.observe()
    assert seen.solved.tolist() == [True, False] and seen.reward.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("attributes", "names"),
    [
        ({}, ()),
        ({"get_action_meanings": lambda self: ["NOOP", "FIRE"]}, ("noop", "fire")),
        ({"actions": IntEnum("Actions", "turn_left turn_right", start=0)}, ("turn left", "turn right")),
        ({"actions": IntEnum("Actions", "left right up", start=0)}, ()),  # not those of this environment
        ({"actions": ["a", "b"]}, ()),
    ],
)
def test_action_names_come_from_the_environment(
    attributes: dict[str, Any], names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in attributes.items():
        monkeypatch.setattr(Corridor, name, value, raising=False)
    env = make_env("gymnasium:Corridor-v0", LEVELS, num_envs=1)
    assert isinstance(env, HasActionNames) and env.action_names() == names


def test_gymnasium_level_is_the_seed_of_reset() -> None:
    env = make_env("gymnasium:Corridor-v0", "all", num_envs=8, seed=4)
    seen = env.observe()
    for index, level in enumerate(seen.level.tolist()):
        obs, _ = Corridor().reset(seed=level)
        assert (seen.obs[index] == obs).all()
    assert len(set(seen.level.tolist())) == 8


def test_gymnasium_levels_depend_on_the_seed_and_stay_in_the_set() -> None:
    def levels(seed: int, levels: LevelSet) -> list[list[int]]:
        env = make_env("gymnasium:Corridor-v0", levels, num_envs=4, seed=seed)
        played = []
        for _ in range(30):
            played.append(env.observe().level.tolist())
            env.act(np.zeros(4, dtype=np.int32))  # left: every step ends an episode
        return played

    few = LevelSet.parse("3,7,11")
    assert levels(0, few) == levels(0, few) != levels(1, few)
    assert {level for row in levels(0, few) for level in row} == set(LEVELS)


def test_gymnasium_play_keeps_the_result_of_the_previous_episode() -> None:
    env = make_env("gymnasium:Corridor-v0", LEVELS, num_envs=2)
    assert isinstance(env, LevelControl) and not isinstance(env, Snapshots)
    for _ in range(2):
        env.observe()
        env.act(np.ones(2, dtype=np.int32))
    seen = env.observe()
    assert seen.solved.all()
    env.play(1, 1234)
    assert (seen.obs[1] == Corridor().reset(seed=1234)[0]).all()
    assert seen.level[1] == 1234 and seen.first[1] and seen.solved[1] and seen.reward[1] == 1
    env.act(np.zeros(2, dtype=np.int32))
    assert env.observe().level[1] in LEVELS  # back to its own set


def test_truncated_episode_is_timed_out_and_not_solved() -> None:
    env = make_env("gymnasium:CartPole-v1", 3, num_envs=1, max_episode_steps=2)
    firsts = []
    for _ in range(4):
        env.act(np.zeros(1, dtype=np.int32))
        seen = env.observe()
        firsts.append(bool(seen.first[0]))
        assert not seen.solved[0] and seen.timed_out[0] == seen.first[0]
    assert firsts == [False, True, False, True]


@pytest.mark.parametrize("is_success", [True, False])
def test_solved_is_read_from_info(is_success: bool) -> None:
    env = make_env("gymnasium:Corridor-v0", 3, num_envs=2, tells_success=is_success)
    env.act(np.array([1, 0], dtype=np.int32))
    assert env.observe().solved.tolist() == [False, is_success]
    env.act(np.array([1, 0], dtype=np.int32))
    assert env.observe().solved.tolist() == [is_success, is_success]


def test_gymnasium_discrete_observations_become_one_hot() -> None:
    env = make_env("gymnasium:FrozenLake-v1", 5, num_envs=2, is_slippery=False)
    seen = env.observe()
    assert env.spec.obs_shape == (16,) and seen.obs.dtype == np.float32
    assert seen.obs.argmax(axis=1).tolist() == [0, 0] and seen.obs.sum() == 2
    env.act(np.array([1, 2], dtype=np.int32))  # down, right
    assert env.observe().obs.argmax(axis=1).tolist() == [4, 1]


@pytest.mark.parametrize(
    ("env_id", "options", "said"),
    [
        ("NoSuchEnv-v0", {}, "NoSuchEnv"),
        ("CartPole-v1", {"wings": 2}, "wings"),
        ("Pendulum-v1", {}, "Discrete actions"),
        ("Blackjack-v1", {}, "Tuple"),
        ("Corridor-v0", {"observation": gymnasium.spaces.Box(0, 1, (2, 4, 3))}, "float32"),
        ("Corridor-v0", {"observation": gymnasium.spaces.Dict(a=gymnasium.spaces.Discrete(2))}, "Dict"),
    ],
)
def test_gymnasium_rejects_unknown_ids_options_and_spaces(env_id: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        make_env(f"gymnasium:{env_id}", 5, num_envs=2, **options)
    assert env_id in str(caught.value) and "\n" not in str(caught.value)
