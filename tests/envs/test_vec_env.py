"""The contract of VecEnv, for each family of environments."""

from collections.abc import Iterator

import numpy as np
import pytest

from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec, HasPicture, LevelControl, Snapshots, VecEnv, initial_observation

NUM_ENVS = 3
NAMES = [
    "minimaze",
    "gymnasium:CartPole-v1",
    "envpool:CartPole-v1",
    pytest.param(
        "procgen:maze",
        marks=[pytest.mark.procgen, pytest.mark.skipif(not is_installed(), reason="no ProcGen library")],
    ),
]
PROTOCOLS = {  # optional ones of each environment
    "minimaze": (LevelControl, Snapshots),
    "gymnasium:CartPole-v1": (LevelControl, HasPicture),
    "envpool:CartPole-v1": (),
    "procgen:maze": (LevelControl, Snapshots, HasPicture),
}


@pytest.fixture(params=NAMES)
def env(request: pytest.FixtureRequest) -> Iterator[VecEnv]:
    kind = request.param.partition(":")[0]
    if kind in ("gymnasium", "envpool"):
        pytest.importorskip(kind)
    made = make_env(request.param, "all" if kind == "envpool" else 20, NUM_ENVS)
    yield made
    made.close()
    made.close()  # safe to call twice


def test_observation_matches_spec(env: VecEnv) -> None:
    seen = env.observe()
    assert seen.obs.shape == (NUM_ENVS, *env.spec.obs_shape) and seen.obs.dtype == env.spec.obs_dtype
    for part, dtype in ((seen.reward, np.float32), (seen.first, bool), (seen.level, np.int32), (seen.solved, bool)):
        assert part.shape == (NUM_ENVS,) and part.dtype == dtype
    assert env.num_envs == NUM_ENVS and env.spec.num_actions > 1


def test_first_observation_has_first_set_and_no_reward(env: VecEnv) -> None:
    seen = env.observe()
    assert seen.first.all() and not seen.reward.any() and not seen.solved.any()


def test_observe_twice_returns_same_observation(env: VecEnv) -> None:
    initial = env.observe()
    for _ in range(5):
        env.act(np.ones(NUM_ENVS, dtype=np.int32))
        once = [np.array(part) for part in env.observe()]
        assert all(np.array_equal(one, other) for one, other in zip(once, env.observe(), strict=True))
        assert env.observe().obs is initial.obs  # buffers are reused


def test_env_implements_expected_optional_protocols(env: VecEnv) -> None:
    kinds = (LevelControl, Snapshots, HasPicture)
    assert tuple(kind for kind in kinds if isinstance(env, kind)) == PROTOCOLS[env.spec.name]


def test_initial_observation_shares_only_obs_and_full() -> None:
    obs = np.zeros((4, 2, 2, 3), dtype=np.uint8)
    seen = initial_observation(obs)
    assert seen.obs is obs and seen.full is obs and seen.first.all()
    seen.first[0], seen.solved[1], seen.reward[2] = False, True, 1
    assert seen.solved.tolist() == [False, True, False, False] and seen.reward.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("classes", [[1], 7, 0, {"move": 3}, {"move": [5]}, {"move": ["up"]}])
def test_spec_from_json_rejects_invalid_action_classes(classes: object) -> None:
    plain = {"name": "minimaze", "obs_shape": [3, 3, 3], "obs_dtype": "uint8", "num_actions": 5}
    assert EnvSpec.from_json({**plain, "action_classes": {"move": [1, 2]}}).action_classes == {"move": [1, 2]}
    with pytest.raises(TypeError):
        EnvSpec.from_json({**plain, "action_classes": classes})
