"""Fill a rollout: observe, store, act, yield. Actions are drawn on the device, with noise that came from outside."""

from collections.abc import Iterator
from typing import Protocol

import torch
from numpy import ndarray
from torch import Tensor

from expgen.envs.vec_env import Observation, VecEnv
from expgen.networks.actor_critic import Policy
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


def sample(logits: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """One action per row of `logits` `[N, A]` by the Gumbel-max trick, and its log-probability."""
    action = (logits + noise).argmax(-1)  # [N]
    log_prob = torch.log_softmax(logits, -1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
    return action, log_prob


@torch.no_grad()
def act_in_slot(policy: Policy, rollout: Rollout, t: Tensor) -> None:
    """Decide step `t` (a one-element tensor): fill that slot's value, action and log-probability, and the next state.

    Tensors in, tensors out, fixed shapes and no host values, so that `accelerate` may capture it as a graph.
    """
    stored = (rollout.obs, rollout.first, rollout.state, rollout.noise)
    obs, first, state, noise = (tensor.index_select(0, t) for tensor in stored)
    output = policy(obs, first, state[0])
    action, log_prob = sample(output.logits[0], noise[0])
    rollout.value.index_copy_(0, t, output.value)
    rollout.action.index_copy_(0, t, action.unsqueeze(0))
    rollout.log_prob.index_copy_(0, t, log_prob.unsqueeze(0))
    if policy.state_size:
        rollout.state.index_copy_(0, t + 1, output.state.unsqueeze(0))
