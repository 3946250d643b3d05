"""A sliding-window UCB bandit: which of several arms to pull next, by what the last pulls of each returned."""

from collections.abc import Mapping

import torch
from torch import Tensor


class UcbBandit:
    """UCB(f) = Q(f) + c √(ln n / n(f)): Q(f) is the mean of the last `window` returns after pulling f.

    n counts all pulls and n(f) those of f; both start at 1, and Q at 0, so the first arm is pulled first. An arm that
    returns more than c √(ln n) is then never left, unless `tries_each` has every arm pulled once before bounds count.
    """

    def __init__(self, num_arms: int, exploration: float, window: int, tries_each: bool = False) -> None:
        self.exploration, self.tries_each = exploration, tries_each
        self.pulls = torch.ones(num_arms, dtype=torch.float64)  # n(f)
        self.total = torch.ones(1, dtype=torch.float64)  # n
        self.returns = torch.zeros(num_arms, window, dtype=torch.float64)  # newest last; 0 where there is none yet
        self.arm = torch.full((1,), -1)  # the last one pulled; −1 before the first

    def reward(self, value: float) -> None:
        """What came of the last pull."""
        arm = int(self.arm)
        self.total += 1
        self.pulls[arm] += 1
        self.returns[arm] = torch.cat([self.returns[arm, 1:], self.returns.new_tensor([value])])

    def pull(self) -> int:
        """The arm of the highest bound; of equals the first."""
        self.arm[:] = int(self.bounds().argmax())
        return int(self.arm)

    def bounds(self) -> Tensor:
        """UCB of every arm."""
        quality = self.returns.sum(1) / (self.pulls - 1).clamp(1, self.returns.shape[1])
        bound = quality + self.exploration * (self.total.log() / self.pulls).sqrt()
        return torch.where(self.pulls == 1, torch.inf, bound) if self.tries_each else bound

    def state(self) -> dict[str, Tensor]:
        return {"pulls": self.pulls, "total": self.total, "returns": self.returns, "arm": self.arm}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`; where weights ship alone there is none, and the bandit begins anew."""
        for name, tensor in self.state().items() if state else ():
            tensor.copy_(state[name])
