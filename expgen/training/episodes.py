"""EpisodeLog: returns, lengths and solved flags of training episodes, computed from rollouts."""

from collections.abc import Mapping

import numpy as np
from numpy import ndarray

from expgen.rollout.rollout import Rollout


class EpisodeLog:
    """The return and length so far of each environment's episode, and the last WINDOW finished episodes."""

    WINDOW = 100

    def __init__(self, num_envs: int) -> None:
        self.running = np.zeros((2, num_envs))  # return and length so far
        self.recent = np.zeros((0, 3))  # [≤ WINDOW, (return, length, solved)] oldest first
        self.count = 0

    def add(self, rollout: Rollout, reward: ndarray | None = None) -> None:
        """Add the T steps of `rollout`. Episodes are logged in the order they end, by environment within a step.

        reward: `[T, N]`, summed to returns; the game's reward by default.
        """
        reward = (rollout.host_reward.numpy() if reward is None else reward).astype(np.float64)
        first = rollout.host_first.numpy()
        self.running = self.running * ~first[0]  # has an effect only if a resumed run could not restore its games
        first = first[1:]
        solved = rollout.host_solved.numpy()[1:]
        total = self.running[0] + reward.cumsum(
            0
        )  # [T, N], from the start of the episode that was running when the rollout began
        length = self.running[1] + np.arange(1, len(reward) + 1)[:, None]
        return_before, length_before = np.zeros_like(self.running[0]), np.zeros_like(self.running[1])
        rows = [self.recent]
        for t in np.flatnonzero(first.any(1)):
            env = np.flatnonzero(first[t])
            returned, steps = total[t, env] - return_before[env], length[t, env] - length_before[env]
            rows.append(np.stack([returned, steps, solved[t, env]], axis=1))
            return_before[env], length_before[env] = total[t, env], length[t, env]
            self.count += len(env)
        self.recent = np.concatenate(rows)[-self.WINDOW :]
        self.running = np.stack([total[-1] - return_before, length[-1] - length_before])

    def summary(self) -> dict[str, float]:
        """Return means over the window; empty until an episode has ended."""
        if not len(self.recent):
            return {}
        mean = self.recent.mean(0)
        return {"episode_return": mean[0], "episode_length": mean[1], "episode_solved": mean[2], "episodes": self.count}

    def state(self) -> dict[str, ndarray]:
        return {"running": self.running, "recent": self.recent, "count": np.array([self.count])}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        self.running, self.recent = np.array(state["running"]), np.array(state["recent"])
        self.count = int(state["count"][0])
