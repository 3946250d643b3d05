"""History: what several rollouts showed, kept until an auxiliary phase has learnt from it.

Observations are kept once, on the learner's device: 32 rollouts of 64 × 256 ProcGen frames are 6.4 GB. A checkpoint
holds none of them. It holds the state of the games at the history's start and the actions since, from which the same
games show the same observations again when a run is resumed.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from expgen.envs.vec_env import Snapshots, VecEnv
from expgen.networks.state import under_prefix, with_prefix
from expgen.rollout.rollout import Rollout


class History:
    """Room for K rollouts, allocated when the first one comes."""

    def __init__(self, capacity: int, device: torch.device) -> None:
        """`capacity` is K; `device` is where rollouts lie."""
        self.capacity, self.count, self.device = capacity, 0, device  # K, how many of them are there, and where
        self.obs = torch.zeros(0)  # [K, T, N, …]
        self.value_target = torch.zeros(0)  # [K, T, N]
        self.action = torch.zeros(0)  # [K, T, N] int32
        self.start: dict[str, Tensor] = {}  # the games before the first rollout; empty where they cannot be saved

    @property
    def is_full(self) -> bool:
        """Whether it is time to learn from it."""
        return self.count == self.capacity

    @property
    def num_columns(self) -> int:
        """K · N: environments' parts of rollouts."""
        return self.count * self.obs.shape[2]

    def open(self, env: VecEnv) -> None:
        """Called before each rollout: save where the games stand, or replay them for frames no checkpoint holds."""
        if self.count == 0:
            self.start = _as_tensors(env.save()) if isinstance(env, Snapshots) else {}
        elif not self.obs.numel():
            self._replay_games(env)

    def add(self, rollout: Rollout) -> None:
        """Keep a finished rollout."""
        T = rollout.num_steps
        obs = rollout.obs[:T]
        self._make_room(rollout.value_target.shape)
        if not self.obs.numel():
            self.obs = torch.zeros(self.capacity, *obs.shape, dtype=obs.dtype, device=self.device)
        self.obs[self.count].copy_(obs)
        self.value_target[self.count].copy_(rollout.value_target)
        self.action[self.count].copy_(rollout.action[:T])
        self.count += 1

    def clear(self) -> None:
        """Forget; the room is used again."""
        self.count, self.start = 0, {}

    @staticmethod
    def columns(kept: Tensor, column: Tensor) -> Tensor:
        """The parts `column` `[P]` of `kept` `[K, T, N, …]`, each one environment in one rollout: `[P, T, …]`."""
        num_envs = kept.shape[2]
        return kept[column // num_envs, :, column % num_envs]

    def state(self) -> dict[str, Tensor]:
        """Everything but the observations."""
        if not self.count:
            return {}
        kept = {"value_target": self.value_target[: self.count], "action": self.action[: self.count]}
        return {**kept, **with_prefix("start", self.start)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`; the observations are back when the history has been opened."""
        self.clear()
        self.obs = torch.zeros(0)
        if "action" in state:
            self._make_room(state["action"].shape[1:])
            self.count = len(state["action"])
            self.value_target[: self.count].copy_(state["value_target"])
            self.action[: self.count].copy_(state["action"])
            self.start = under_prefix("start", state)

    def _replay_games(self, env: VecEnv) -> None:
        """Play the kept actions from the history's start; a new history where games cannot be put there."""
        if not isinstance(env, Snapshots) or not self.start:
            self.clear()
            return
        now = env.save()
        env.restore({name: tensor.numpy() for name, tensor in self.start.items()})
        actions = self.action.cpu().numpy()
        for rollout in range(self.count):
            for t, action in enumerate(actions[rollout]):
                seen = torch.from_numpy(env.observe().obs)  # [N, …]
                if not self.obs.numel():
                    self.obs = torch.zeros(*actions.shape, *seen.shape[1:], dtype=seen.dtype, device=self.device)
                self.obs[rollout, t].copy_(seen)
                env.act(action)
        env.observe()
        env.restore(now)

    def _make_room(self, shape: torch.Size) -> None:
        """For all but the observations; `shape` is `[T, N]`."""
        if not self.action.numel():
            self.value_target = torch.zeros(self.capacity, *shape, device=self.device)
            self.action = torch.zeros(self.capacity, *shape, dtype=torch.int32, device=self.device)


def _as_tensors(arrays: Mapping[str, ndarray]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
