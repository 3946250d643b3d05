"""Lane: how one learner's acting and updates run on its device. On the CPU they are plain function calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import torch
from numpy import ndarray

from expgen.envs.vec_env import Observation
from expgen.networks.actor_critic import Policy
from expgen.rollout.collect import ActionSampler, act_in_slot
from expgen.rollout.rollout import Rollout


class Lane(ActionSampler, Protocol):
    """An ActionSampler that also runs updates."""

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Run the work inside after this rollout and before the next one; never yield inside."""

    def backlog(self) -> int:
        """Return how many `updating` blocks the device has not finished."""

    def close(self) -> None:
        """Release the environment's buffers; call before closing the environment."""


class PlainLane:
    """Calls the policy directly on the CPU; all work is synchronous."""

    def __init__(self, policy: Policy, rollout: Rollout) -> None:
        self.policy, self.rollout = policy, rollout
        self.slots = torch.arange(rollout.num_steps + 1).split(1)
        self.decided = rollout.action.numpy()
        self.action = np.zeros(rollout.num_envs, dtype=np.int32)

    def start(self, t: int, observation: Observation) -> None:
        self.rollout.record(t, observation)
        act_in_slot(self.policy, self.rollout, self.slots[t])
        self.action[:] = self.decided[t]

    def wait(self) -> ndarray:
        return self.action

    @contextmanager
    def updating(self) -> Iterator[None]:
        yield

    def backlog(self) -> int:
        return 0

    def close(self) -> None: ...
