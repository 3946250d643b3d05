"""History: observations and value targets of the last rollouts, stored until PPG's auxiliary phase.

Observations are stored once, on the learner's device: 32 rollouts of 64 × 256 ProcGen frames take 6.4 GB. Checkpoints
do not contain them. They contain the environment's state at the history's start, and the actions and levels since; a
resumed run replays these to see the same observations again.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from expgen.envs.vec_env import LevelControl, Snapshots, VecEnv
from expgen.networks.state import under_prefix, with_prefix
from expgen.rollout.rollout import Rollout


class History:
    """Buffer of K = `capacity` rollouts, allocated when the first one is added."""

    def __init__(self, capacity: int, device: torch.device) -> None:
        self.capacity, self.count, self.device = capacity, 0, device
        self.obs = torch.zeros(0)  # [K, T, N, …]
        self.value_target = torch.zeros(0)  # [K, T, N]
        self.action = torch.zeros(0)  # [K, T, N] int32
        self.level = torch.zeros(0)  # [K, T, N] int32; −1 if unknown, in checkpoints of earlier versions
        self.start: dict[str, Tensor] = {}  # environment before the first rollout; empty if it cannot be saved

    @property
    def is_full(self) -> bool:
        """Whether K rollouts are stored: the auxiliary phase is due."""
        return self.count == self.capacity

    @property
    def num_columns(self) -> int:
        """Number of sequences, one per environment and stored rollout: K · N when full."""
        return self.count * self.obs.shape[2]

    def open(self, env: VecEnv) -> None:
        """Before a rollout, save the environment if the history is empty; after a resume, replay its observations."""
        if self.count == 0:
            saved = env.save() if isinstance(env, Snapshots) else {}
            self.start = {name: torch.from_numpy(np.array(array)) for name, array in saved.items()}
        elif not self.obs.numel():
            self._replay_games(env)

    def add(self, rollout: Rollout) -> None:
        """Store a finished rollout."""
        T = rollout.num_steps
        obs = rollout.obs[:T]
        self._allocate(rollout.value_target.shape)
        if not self.obs.numel():
            self.obs = torch.zeros(self.capacity, *obs.shape, dtype=obs.dtype, device=self.device)
        self.obs[self.count].copy_(obs)
        self.value_target[self.count].copy_(rollout.value_target)
        self.action[self.count].copy_(rollout.action[:T])
        self.level[self.count].copy_(rollout.level[:T])
        self.count += 1

    def clear(self) -> None:
        """Discard the stored rollouts; their memory is reused."""
        self.count, self.start = 0, {}

    @staticmethod
    def columns(stored: Tensor, column: Tensor) -> Tensor:
        """Return sequences `[P, T, …]` of `stored` `[K, T, N, …]`; `column` `[P]` counts them as rollout · N + env."""
        num_envs = stored.shape[2]
        return stored[column // num_envs, :, column % num_envs]

    def state(self) -> dict[str, Tensor]:
        """Return everything but the observations."""
        if not self.count:
            return {}
        stored = {"value_target": self.value_target, "action": self.action, "level": self.level}
        stored = {name: tensor[: self.count] for name, tensor in stored.items()}
        return {**stored, **with_prefix("start", self.start)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned; `open` restores the observations."""
        self.clear()
        self.obs = torch.zeros(0)
        if "action" in state:
            self._allocate(state["action"].shape[1:])
            self.count = len(state["action"])
            self.value_target[: self.count].copy_(state["value_target"])
            self.action[: self.count].copy_(state["action"])
            self.level[: self.count].copy_(state.get("level", torch.tensor(-1)))
            self.start = under_prefix("start", state)

    def _replay_games(self, env: VecEnv) -> None:
        """Replay the stored actions and levels from the start; clear the history if the games cannot be restored."""
        if not isinstance(env, Snapshots) or not self.start:
            self.clear()
            return
        now = env.save()
        env.restore({name: tensor.numpy() for name, tensor in self.start.items()})
        actions, levels = self.action.cpu().numpy(), self.level.cpu().numpy()
        for rollout in range(self.count):
            for t, action in enumerate(actions[rollout]):
                play_levels(env, levels[rollout, t])
                obs = torch.from_numpy(env.observe().obs)  # [N, …]
                if not self.obs.numel():
                    self.obs = torch.zeros(*actions.shape, *obs.shape[1:], dtype=obs.dtype, device=self.device)
                self.obs[rollout, t].copy_(obs)
                env.act(action)
        env.observe()
        env.restore(now)

    def _allocate(self, shape: torch.Size) -> None:
        """Allocate everything but the observations, if that has not been done; `shape` is `[T, N]`."""
        if not self.action.numel():
            self.value_target = torch.zeros(self.capacity, *shape, device=self.device)
            self.action, self.level = (
                torch.zeros(self.capacity, *shape, dtype=torch.int32, device=self.device) for _ in range(2)
            )


def play_levels(env: VecEnv, level: ndarray) -> None:
    """Set games that begin an episode to `level` `[N]` if the environment chose another: level replay had set it."""
    observation = env.observe()
    is_other = observation.first & (observation.level != level) & (level >= 0)
    if isinstance(env, LevelControl):
        for index in np.flatnonzero(is_other).tolist():
            env.play(index, int(level[index]))
