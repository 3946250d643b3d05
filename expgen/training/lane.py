"""Lane: where one learner's work runs. On the CPU it is plain function calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import torch
from numpy import ndarray

from expgen.envs.vec_env import Observation
from expgen.networks.actor_critic import Policy
from expgen.rollout.collect import Actor, act_in_slot
from expgen.rollout.rollout import Rollout


class Lane(Actor, Protocol):
    """An Actor, and the place where updates run."""

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Work inside runs after the rollout and before the next one; never yield inside."""

    def backlog(self) -> int:
        """How many of the `updating` blocks handed over are still unfinished."""

    def close(self) -> None:
        """Let go of the environment's buffers; call before the environment is closed."""


class HostLane:
    """What lanes on the CPU share: work is done when it is asked for, so there is never any to wait for."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout
        self.action = np.zeros(rollout.num_envs, dtype=np.int32)
        self.decided = rollout.action.numpy()

    def wait(self) -> ndarray:
        return self.action

    @contextmanager
    def updating(self) -> Iterator[None]:
        yield

    def backlog(self) -> int:
        return 0

    def close(self) -> None: ...


class PlainLane(HostLane):
    """Everything at once, in the order it is asked for."""

    def __init__(self, policy: Policy, rollout: Rollout) -> None:
        super().__init__(rollout)
        self.policy = policy
        self.slots = torch.arange(rollout.num_steps + 1).split(1)

    def start(self, t: int, observation: Observation) -> None:
        self.rollout.record(t, observation)
        act_in_slot(self.policy, self.rollout, self.slots[t])
        self.action[:] = self.decided[t]
