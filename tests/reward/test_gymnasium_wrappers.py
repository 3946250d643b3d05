"""The Gymnasium wrappers: rewards, autoreset modes, and rejected arguments."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from expgen.errors import InputError
from expgen.reward.gymnasium_wrappers import KnnRewardVectorWrapper, KnnRewardWrapper
from expgen.reward.knn import KnnConfig

GREY = [10, 13, 11, 11]  # to the second nearest earlier frame: 3, 2, 1; the last step ends the episode


class Greys(gymnasium.Env):
    """One grey pixel with the values of GREY; every step has reward 8."""

    observation_space: gymnasium.Space = Box(0, 255, (1, 1, 1), np.uint8)
    action_space = Discrete(2)
    t = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.t = 0
        return self._seen()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        obs, info = self._seen()
        return obs, 8.0, self.t == len(GREY) - 1, False, info

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        return np.full((1, 1, 1), GREY[self.t], dtype=np.uint8), {"other": np.full((1, 1, 1), self.t, dtype=np.uint8)}


PIXEL = KnnConfig(pool=1)


def test_wrapper_replaces_the_reward_and_reports_the_games() -> None:
    env = KnnRewardWrapper(Greys(), PIXEL)
    for _ in range(2):  # the second episode ignores the first
        env.reset()
        steps = [env.step(0) for _ in range(3)]
        np.testing.assert_allclose([step[1] * 255 for step in steps], [3, 2, 0], atol=1e-4)
        assert [step[4]["game_reward"] for step in steps] == [8, 8, 8] and steps[-1][2]


def test_wrapper_mixes_in_the_game_reward() -> None:
    env = KnnRewardWrapper(Greys(), PIXEL, beta=0.25)
    env.reset()
    assert env.step(0)[1] == pytest.approx(0.25 * 3 / 255 + 0.75 * 8)


def test_wrapper_measures_the_named_view() -> None:
    env = KnnRewardWrapper(Greys(), PIXEL, view="other")
    env.reset()
    np.testing.assert_allclose([env.step(0)[1] * 255 for _ in range(3)], [1, 2, 0], atol=1e-4)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_vector_wrapper_equals_the_single_wrapper(mode: AutoresetMode) -> None:
    env = KnnRewardVectorWrapper(SyncVectorEnv([Greys] * 2, autoreset_mode=mode), PIXEL)
    env.reset()
    paid = [env.step(np.zeros(2, dtype=int))[1] * 255 for _ in range(8)]
    pause = [] if mode == AutoresetMode.SAME_STEP else [0]  # the step that only resets
    np.testing.assert_allclose(np.array(paid)[:, 0], ([3, 2, 0, *pause] * 3)[:8], atol=1e-4)
    np.testing.assert_array_equal(np.array(paid)[:, 0], np.array(paid)[:, 1])


class Odd(Greys):
    """Greys with another observation space."""

    def __init__(self, space: gymnasium.Space) -> None:
        self.observation_space = space


def greys() -> SyncVectorEnv:
    return SyncVectorEnv([Greys])


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda: KnnRewardWrapper("CartPole-v1"), "env is 'CartPole-v1'; accepted: a Gymnasium environment"),
        (
            lambda: KnnRewardWrapper(greys()),
            "accepted: a Gymnasium environment .for a vector: KnnRewardVectorW",
        ),
        (lambda: KnnRewardVectorWrapper(Greys()), "accepted: a Gymnasium vector environment .for a single one: KnnRew"),
        (lambda: KnnRewardVectorWrapper(None), "env is None; accepted: a Gymnasium vector environment"),
        (lambda: KnnRewardWrapper(Greys(), beta=2), "beta is 2; accepted: 0 to 1"),
        (lambda: KnnRewardWrapper(Greys(), beta="half"), "beta is 'half'; accepted: 0 to 1"),
        (lambda: KnnRewardVectorWrapper(greys(), beta=-0.5), "beta is -0.5; accepted: 0 to 1"),
        (lambda: KnnRewardWrapper(Greys(), beta=float("nan")), "beta is nan; accepted: 0 to 1"),
        (lambda: KnnRewardWrapper(Greys(), "l2"), "config is 'l2'; accepted: a KnnConfig"),
        (lambda: KnnRewardVectorWrapper(greys(), 3), "config is 3; accepted: a KnnConfig"),
        (lambda: KnnRewardWrapper(Greys(), KnnConfig(distance="l1")), "--distance is 'l1'; accepted: l2, l0"),
        (lambda: KnnRewardVectorWrapper(greys(), KnnConfig(neighbor_rank=0)), "--neighbor-rank is 0; accepted: 1 or"),
        (lambda: KnnRewardWrapper(Greys(), PIXEL).step(0), "first is False in the first call; accepted: True"),
        (lambda: KnnRewardWrapper(Greys(), KnnConfig(pool=0)), "--pool is 0; accepted: 1 to 11"),
        (lambda: KnnRewardWrapper(Greys()).reset(), "--pool is 3 for images with a side of 1; accepted: 1 to 1"),
        (
            lambda: KnnRewardWrapper(Greys(), PIXEL, view="full").reset(),
            "view is 'full', which is not in info; .*other",
        ),
        (lambda: KnnRewardVectorWrapper(greys(), PIXEL, view="x").reset(), "view is 'x', which is not in info"),
        (lambda: KnnRewardWrapper(Odd(Discrete(4))), r"env has observations Discrete\(4\); accepted: a Box, or view="),
        (lambda: KnnRewardWrapper(Odd(gymnasium.spaces.Dict(a=Discrete(2)))), "env has observations Dict.*: a Box"),
        (
            lambda: KnnRewardWrapper(Odd(Box(0, 255, (4, 84, 84), np.uint8))),
            r"env has images \(4, 84, 84\), channels first; accepted: \(height, width, channels\)",
        ),
        (
            lambda: KnnRewardVectorWrapper(SyncVectorEnv([Greys], autoreset_mode=AutoresetMode.DISABLED)),
            "env has autoreset_mode .*DISABLED.*; accepted: SAME_STEP or NEXT_STEP",
        ),
    ],
)
def test_wrappers_reject_bad_arguments_in_one_line(wrap: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refusal:
        wrap()
    assert "\n" not in str(refusal.value)
