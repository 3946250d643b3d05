"""Collect a rollout: observe, store, act, T times. Actions are sampled on the device with noise drawn in advance."""

from collections.abc import Iterator
from typing import Protocol

import torch
from numpy import ndarray
from torch import Tensor

from expgen.envs.vec_env import Observation, VecEnv
from expgen.networks.actor_critic import Policy
from expgen.rollout.level_choice import Director
from expgen.rollout.rollout import Rollout


class ActionSampler(Protocol):
    """Samples the actions of one slot of a rollout at a time, possibly asynchronously on a GPU."""

    def start(self, t: int, observation: Observation) -> None:
        """Store the observation in slot `t` of the rollout and start sampling its actions."""

    def wait(self) -> ndarray:
        """Return the actions `[N]` int32 of the slot started last."""


def collect(env: VecEnv, actor: ActionSampler, rollout: Rollout, director: Director | None = None) -> Iterator[None]:
    """Play T steps, then evaluate the observation after them. Yields while the actor or the environment is working.

    Slot T is evaluated only for its value: it does not advance the memory (`rollout.state`), and its actions are not
    played. The next rollout starts with the same observation, acted on by the updated policy. A director, if there is
    one, sets the level of each new episode before the actor sees the observation.
    """
    for t in range(rollout.num_steps + 1):
        observation = env.observe()
        if director is not None:
            director.direct(observation, is_new=t > 0)
        actor.start(t, observation)
        yield
        action = actor.wait()
        if t < rollout.num_steps:
            env.act(action)
            yield


def sample(logits: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Sample one action per row of `logits` `[N, A]` by the Gumbel-max trick; return it and its log-probability."""
    action = (logits + noise).argmax(-1)  # [N]
    log_prob = torch.log_softmax(logits, -1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
    return action, log_prob


@torch.no_grad()
def act_in_slot(policy: Policy, rollout: Rollout, t: Tensor) -> None:
    """Run the policy on slot `t` (a one-element tensor): fill its value, action, log-probability, and the next state.

    Shapes are fixed and no value is read on the host, so that `fast.accelerate` can capture it as a CUDA graph.
    """
    obs, first = rollout.obs.index_select(0, t), rollout.first.index_select(0, t)  # [1, N, …]
    state, noise = rollout.state.index_select(0, t), rollout.noise.index_select(0, t)
    output = policy(obs, first, state[0])
    action, log_prob = sample(output.logits[0], noise[0])
    rollout.value.index_copy_(0, t, output.value)
    rollout.action.index_copy_(0, t, action.unsqueeze(0))
    rollout.log_prob.index_copy_(0, t, log_prob.unsqueeze(0))
    if policy.state_size:
        rollout.state.index_copy_(0, t + 1, output.state.unsqueeze(0))
