"""ReturnScaler: divides rewards by the running standard deviation of the discounted return (baselines' VecNormalize).

At every step, per environment: G ← ρ G + r, ρ = 0.99 (not the γ of the advantages); the moments of all G so far are
updated with the N new values; r' = clip(r / √(var + 1e-8), ±10); G ← 0 where the step ended an episode. The mean is not
subtracted. PPG's authors update the moments with a whole rollout's G before scaling its rewards.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy import ndarray


@dataclass(frozen=True)
class Moments:
    """Running mean and (biased) variance, with the initial pseudo-count of baselines."""

    mean: float = 0.0
    var: float = 1.0
    count: float = 1e-4


class ReturnScaler:
    """Owns the running return of each environment and the moments of all returns."""

    DECAY = 0.99
    CLIP = 10.0
    EPSILON = 1e-8

    def __init__(self, num_envs: int, per_rollout: bool = False) -> None:
        """`per_rollout`: scale all rewards of a rollout by the std after it, as PPG does."""
        self.per_rollout = per_rollout
        self.running_return = np.zeros(num_envs)  # G, [N]
        self.moments = Moments()

    def reset_where(self, first: ndarray) -> None:
        """Reset G where `first` `[N]` opens an episode: needed only if a resumed run could not restore its games."""
        self.running_return = self.running_return * ~first

    def __call__(self, reward: ndarray, ended: ndarray) -> ndarray:
        """Return scaled rewards `[T, N]` float32 from `reward` and `ended` `[T, N]` of a rollout.

        The moments after step t are those of the initial pseudo-count and every G up to t; cumulative sums give all T
        of them at once, with the same result as step-by-step updates.
        """
        running = np.empty(reward.shape)  # [T, N]
        value = self.running_return
        continues = ~ended
        for t in range(len(reward)):
            running[t] = value = self.DECAY * value + reward[t]
            value = value * continues[t]
        self.running_return = value

        m = self.moments
        count = m.count + reward.shape[1] * np.arange(1, len(reward) + 1)  # [T]
        mean = (m.mean * m.count + running.sum(1).cumsum()) / count
        second = ((m.var + m.mean**2) * m.count + (running**2).sum(1).cumsum()) / count
        var = np.maximum(second - mean**2, 0)
        self.moments = Moments(float(mean[-1]), float(var[-1]), float(count[-1]))
        if self.per_rollout:
            var = var[-1:]
        scaled = reward / np.sqrt(var + self.EPSILON)[:, None]
        return np.clip(scaled, -self.CLIP, self.CLIP).astype(np.float32)

    def state(self) -> dict[str, ndarray]:
        m = self.moments
        return {"running_return": self.running_return, "moments": np.array([m.mean, m.var, m.count])}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        self.running_return = np.array(state["running_return"])
        self.moments = Moments(*(float(number) for number in state["moments"]))
