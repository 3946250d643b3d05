"""EpisodeLog: returns, lengths and solved flags of training episodes, read off rollouts."""

from collections.abc import Mapping

import numpy as np
from numpy import ndarray

from expgen.rollout.rollout import Rollout


class EpisodeLog:
    """Owns the running return and length of each environment and the last WINDOW finished episodes."""

    WINDOW = 100

    def __init__(self, num_envs: int) -> None:
        self.running = np.zeros((2, num_envs))  # return and length so far
        self.recent = np.zeros((0, 3))  # [≤ WINDOW, (return, length, solved)] oldest first
        self.count = 0

    def add(self, rollout: Rollout, reward: ndarray | None = None) -> None:
        """Account for T more steps; episodes enter in the order they ended, environments in order within a step.

        `reward` `[T, N]` is what returns are sums of: the game's unless another is given.
        """
        reward = (rollout.host_reward.numpy() if reward is None else reward).astype(np.float64)
        first = rollout.host_first.numpy()
        self.running = self.running * ~first[0]  # only news where games were not restored with the rest
        first = first[1:]
        solved = rollout.host_solved.numpy()[1:]
        total = self.running[0] + reward.cumsum(0)  # [T, N], since the episode under way at the rollout's start
        length = self.running[1] + np.arange(1, len(reward) + 1)[:, None]
        paid_before, length_before = np.zeros_like(self.running[0]), np.zeros_like(self.running[1])
        rows = [self.recent]
        for t in np.flatnonzero(first.any(1)):
            env = np.flatnonzero(first[t])
            paid, steps = total[t, env] - paid_before[env], length[t, env] - length_before[env]
            rows.append(np.stack([paid, steps, solved[t, env]], axis=1))
            paid_before[env], length_before[env] = total[t, env], length[t, env]
            self.count += len(env)
        self.recent = np.concatenate(rows)[-self.WINDOW :]
        self.running = np.stack([total[-1] - paid_before, length[-1] - length_before])

    def summary(self) -> dict[str, float]:
        """Means over the window; empty before the first episode ended."""
        if not len(self.recent):
            return {}
        mean = self.recent.mean(0)
        return {"episode_return": mean[0], "episode_length": mean[1], "episode_solved": mean[2], "episodes": self.count}

    def state(self) -> dict[str, ndarray]:
        """Everything a resumed run needs."""
        return {"running": self.running, "recent": self.recent, "count": np.array([self.count])}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        """Continue from `state`."""
        self.running, self.recent = np.array(state["running"]), np.array(state["recent"])
        self.count = int(state["count"][0])
