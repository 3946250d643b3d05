"""ReturnScaler against a step-by-step VecNormalize, and by hand."""

import numpy as np
import pytest
from numpy import ndarray

from expgen.reward.scale import ReturnScaler


class VecNormalize:
    """One vector step at a time, moments merged by the parallel-variance formula."""

    def __init__(self, num_envs: int) -> None:
        self.ret = np.zeros(num_envs)
        self.mean, self.var, self.count = 0.0, 1.0, 1e-4

    def step(self, reward: ndarray, done: ndarray) -> ndarray:
        self.ret = self.ret * 0.99 + reward
        self._update(self.ret.mean(), self.ret.var(), len(self.ret))
        scaled = np.clip(reward / np.sqrt(self.var + 1e-8), -10.0, 10.0)
        self.ret[done] = 0.0
        return scaled

    def _update(self, mean: float, var: float, count: int) -> None:
        delta, total = mean - self.mean, self.count + count
        squares = self.var * self.count + var * count + delta**2 * self.count * count / total
        self.mean, self.var, self.count = self.mean + delta * count / total, squares / total, total


def random_case(num_steps: int, num_envs: int, scale: float = 1.0, seed: int = 0) -> tuple[ndarray, ndarray]:
    rng = np.random.default_rng(seed)
    reward = (scale * rng.normal(size=(num_steps, num_envs)) * (rng.random((num_steps, num_envs)) < 0.3)).astype("f4")
    return reward, rng.random((num_steps, num_envs)) < 0.05


@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
def test_scaler_equals_vec_normalize(scale: float):
    scaler, oracle = ReturnScaler(6), VecNormalize(6)
    for seed in range(3):
        reward, ended = random_case(200, 6, scale, seed)
        expected = np.stack([oracle.step(*row) for row in zip(reward, ended)])
        np.testing.assert_allclose(scaler(reward, ended), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(scaler.running_return, oracle.ret, rtol=1e-9, atol=1e-12)
    m = scaler.moments
    np.testing.assert_allclose([m.mean, m.var, m.count], [oracle.mean, oracle.var, oracle.count], rtol=1e-7)


def test_per_rollout_scaling_uses_the_last_std():
    """Moments and running returns are the same; only the rewards of a rollout share one divisor."""
    by_step, whole = ReturnScaler(6), ReturnScaler(6, per_rollout=True)
    for seed in range(3):
        reward, ended = random_case(50, 6, 2.0, seed)
        last = by_step(reward, ended)[-1]
        scaled = whole(reward, ended)
        assert whole.moments == by_step.moments
        expected = np.clip(reward / np.sqrt(whole.moments.var + 1e-8), -10, 10)
        np.testing.assert_allclose(scaled, expected, rtol=1e-6)
        np.testing.assert_array_equal(scaled[-1], last)


def test_scaler_is_accurate_for_rewards_of_one_sign():
    """All-positive rewards put the mean of G far above its spread."""
    scaler, oracle = ReturnScaler(4), VecNormalize(4)
    rng = np.random.default_rng(0)
    for _ in range(5):
        reward = (1 + 0.01 * rng.random((512, 4))).astype(np.float32)
        ended = np.zeros((512, 4), dtype=bool)
        expected = np.stack([oracle.step(*row) for row in zip(reward, ended)])
        np.testing.assert_allclose(scaler(reward, ended), expected, rtol=1e-5)


def test_reward_scaling_first_steps_by_hand():
    """Two environments have rewards 1 and 0, then the first ends, and both have reward 1."""
    reward = np.array([[1, 0], [1, 1], [1, 0]], dtype=np.float32)
    ended = np.array([[False, True], [True, False], [False, False]])
    # G: (1, 0); (1.99, 1); then environment 0 was zeroed: (1, 0.99)
    g = [[1, 0], [1.99, 1], [1, 0.99]]
    scaled = ReturnScaler(2)(reward, ended)
    for t in range(3):
        seen = np.array(g[: t + 1]).ravel()
        count = len(seen) + 1e-4
        mean = seen.sum() / count
        var = (1e-4 * 1 + (seen**2).sum()) / count - mean**2
        np.testing.assert_allclose(scaled[t], reward[t] / np.sqrt(var + 1e-8), rtol=1e-6)
    assert scaled[0, 0] == pytest.approx(1.9998, abs=1e-5)  # 1 / √0.25005: nearly the std of (1, 0), which is ½
    assert scaled[2, 1] == 0


def test_episode_end_resets_the_return_after_it_is_counted():
    scaler = ReturnScaler(2)
    scaler(np.array([[3.0, 5.0]], dtype=np.float32), np.array([[True, False]]))
    assert scaler.running_return.tolist() == [0, 5]
    assert scaler.moments.mean == pytest.approx(8 / 2.0001)


def test_scaled_rewards_are_clipped_at_ten():
    # one environment: var = 1 − (1 / 1.0001)² ≈ 0.0002, so 1 would become 70.7
    assert ReturnScaler(1)(np.array([[1.0]], dtype=np.float32), np.array([[False]])).tolist() == [[10]]
    assert ReturnScaler(1)(np.array([[-1.0]], dtype=np.float32), np.array([[False]])).tolist() == [[-10]]


def test_scaler_does_not_subtract_the_mean():
    scaled = ReturnScaler(4)(np.zeros((3, 4), dtype=np.float32), np.zeros((3, 4), dtype=bool))
    assert not scaled.any() and scaled.dtype == np.float32


def test_scaling_does_not_depend_on_rollout_length():
    reward, ended = random_case(60, 5)
    whole, cut = ReturnScaler(5), ReturnScaler(5)
    expected = whole(reward, ended)
    parts = [cut(reward[a:b], ended[a:b]) for a, b in ((0, 1), (1, 17), (17, 60))]
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-6)


def test_restored_scaler_continues_identically():
    scaler, other = ReturnScaler(5), ReturnScaler(5)
    scaler(*random_case(30, 5))
    other.load_state({name: array.copy() for name, array in scaler.state().items()})
    more = random_case(30, 5, seed=1)
    assert np.array_equal(scaler(*more), other(*more))
