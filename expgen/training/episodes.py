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
        first, solved = rollout.host_first.numpy(), rollout.host_solved.numpy()
        self.running = self.running * ~first[0]  # has an effect only if a resumed run could not restore its games
        steps = np.stack([reward, np.ones_like(reward)])  # [2, T, N] rewards and lengths
        total = self.running[:, None] + steps.cumsum(1)  # [2, T, N]
        before = np.zeros_like(self.running)  # the total at the start of the current episode
        rows = [self.recent]
        for t in np.flatnonzero(first[1:].any(1)):
            env = np.flatnonzero(first[t + 1])
            episode = total[:, t, env] - before[:, env]
            rows.append(np.stack([*episode, solved[t + 1, env]], axis=1))
            before[:, env] = total[:, t, env]
            self.count += len(env)
        self.recent = np.concatenate(rows)[-self.WINDOW :]
        self.running = total[:, -1] - before

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
