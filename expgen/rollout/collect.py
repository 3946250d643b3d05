"""Fill a rollout: observe, store, act, yield."""

from collections.abc import Iterator
from typing import Protocol

from numpy import ndarray

from expgen.envs.vec_env import Observation, VecEnv
from expgen.rollout.level_choice import Director
from expgen.rollout.rollout import Rollout


class Actor(Protocol):
    """Decides one slot of a rollout at a time, possibly on another device."""

    def start(self, t: int, observation: Observation) -> None:
        """Store the observation in slot `t` of the rollout and begin deciding it."""

    def wait(self) -> ndarray:
        """The actions `[N]` int32 of the slot last started."""


def collect(env: VecEnv, actor: Actor, rollout: Rollout, director: Director | None = None) -> Iterator[None]:
    """Play T steps and look at the observation after them. Each yield: work is under way, come back later.

    The memory (`rollout.state`) is advanced by the T steps played and not by the look at the last observation, which
    is only there for its value; the next rollout opens with that same observation, decided by the updated policy.
    Where there is a director, it sends games whose episode begins to their level before the actor sees them.
    """

    def start(t: int) -> None:
        observation = env.observe()
        if director is not None:
            director.direct(observation, is_new=t > 0)
        actor.start(t, observation)

    for t in range(rollout.num_steps):
        start(t)
        yield
        env.act(actor.wait())
        yield
    start(rollout.num_steps)
    yield
    actor.wait()
