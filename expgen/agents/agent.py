"""Agents that play at test time. They have no optimiser, no rollout and no reset(): `first` marks new episodes."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy import ndarray

from expgen.agents.predict import PredictMixin
from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.networks.actor_critic import Policy, PolicyOutput, device_of
from expgen.random import (
    EXPLORERS,
    MEMORYLESS,
    TURN,
    UNIFORM,
    WITH_MEMORY,
    EpisodeClock,
    gumbel_noise,
    stream_seed,
    uniform_noise,
)


class Agent(Protocol):
    """Chooses one action per environment; an optional attribute `spec` is the EnvSpec it was trained for."""

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        """`obs` `[N, …]`, `first` `[N]` → actions `[N]` int32.

        `episode` `[N]` numbers the episodes being played; without it the agent counts them itself. Its randomness
        depends only on this number and the step within the episode, not on the batch. Environments with a negative
        number are ignored: no policy is evaluated for them and their actions are arbitrary.
        """


def check_compatible(agent: object, spec: EnvSpec) -> None:
    """Raise InputError if `agent` has a `spec` with other observations or actions than `spec`."""
    own_spec = getattr(agent, "spec", None)
    if isinstance(own_spec, EnvSpec) and _interface(own_spec) != _interface(spec):
        problem = f"env is {spec.name!r} with {_interface(spec)}"
        raise InputError(f"{problem}; accepted by this agent of {own_spec.name}: {_interface(own_spec)}")


def _interface(spec: EnvSpec) -> str:
    return f"observations {spec.obs_shape} {spec.obs_dtype} and {spec.num_actions} actions"


class PolicyAgent(PredictMixin):
    """Samples the actions of one policy and keeps its memory between steps.

    `stream` separates the randomness of agents with one seed that act together; the default differs for policies with
    and without memory, that is for explorers and members. After `act`, `output` is the policy's output (for the
    inspector) and `noisy_logits` `[N, A]` are the logits plus Gumbel noise whose argmax is the action (for `--hedge`).
    """

    def __init__(self, policy: Policy, seed: int = 0, stream: int | None = None, spec: EnvSpec | None = None) -> None:
        self.policy, self.spec = policy, spec
        self.seed = stream_seed(seed, (WITH_MEMORY if policy.state_size else MEMORYLESS) if stream is None else stream)
        self.device = device_of(policy)
        self.clock = EpisodeClock()
        self.state = torch.zeros(0, policy.state_size, device=self.device)
        self.output: PolicyOutput | None = None
        self.noisy_logits = np.zeros((0, 0), dtype=np.float32)

    def __repr__(self) -> str:
        env = f"{self.spec.name}, " if self.spec else ""
        return f"PolicyAgent({env}{'with' if self.policy.state_size else 'no'} memory, on {self.device})"

    @torch.no_grad()
    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        self.clock.tick(first, episode)
        if len(self.state) != len(first):
            self.state = torch.zeros(len(first), self.policy.state_size, device=self.device)
        action = np.zeros(len(first), dtype=np.int32)
        active = np.flatnonzero(self.clock.episode >= 0)  # [n]
        if len(active) == 0:
            return action
        rows = slice(None) if len(active) == len(first) else active
        pixels = torch.from_numpy(obs[rows]).to(self.device).unsqueeze(0)  # [1, n, …]
        is_first = torch.from_numpy(np.asarray(first, dtype=bool)[rows]).to(self.device).unsqueeze(0)  # [1, n]
        self.output = output = self.policy(pixels, is_first, self.state[rows])
        self.state[rows] = output.state
        logits = output.logits[0].cpu().numpy()  # [n, A]
        noisy = logits + gumbel_noise(self.seed, self.clock.episode[rows], self.clock.step[rows], logits.shape[1])
        action[rows] = noisy.argmax(1)
        self.noisy_logits = np.zeros((len(first), logits.shape[1]), noisy.dtype)
        self.noisy_logits[rows] = noisy
        return action


class UniformAgent(PredictMixin):
    """Samples every action with equal probability: the baseline for an agent that has learnt nothing."""

    def __init__(self, num_actions: int, seed: int = 0) -> None:
        self.num_actions, self.seed = num_actions, stream_seed(seed, UNIFORM)
        self.clock = EpisodeClock()

    def __repr__(self) -> str:
        return f"UniformAgent({self.num_actions} actions)"

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        self.clock.tick(first, episode)
        number = uniform_noise(self.seed, self.clock.episode, self.clock.step, 1)[:, 0]
        return (number * self.num_actions).astype(np.int32)


class TurnsAgent(PredictMixin):
    """Policies that take turns of `turn` steps, in order from a randomly drawn first one.

    Different policies rarely loop in the same place on an unseen level, so a change of policy ends most loops. With
    `turn=1` a policy is drawn at every step, which plays the mean of their probabilities. Policies with memory see
    every frame. With `patience`, only the first `members` policies act in the first `patience` steps of an episode.
    After `act`, `acting` `[N]` is the index of the policy that acted and `noisy_logits` `[N, A]` are its noisy logits.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        turn: int,
        seed: int = 0,
        spec: EnvSpec | None = None,
        members: int = 0,
        patience: int = 0,
    ) -> None:
        if patience and not 0 < members < len(policies):
            raise InputError(f"--patience is {patience} but the agent needs both members and explorers; accepted: 0")
        self.spec, self.turn, self.members, self.patience = spec, turn, members, patience
        streams = [WITH_MEMORY, *(EXPLORERS + index for index in range(1, len(policies)))]
        seeds = [stream_seed(seed, stream) for stream in streams]
        self.agents = [PolicyAgent(policy, own, 0) for policy, own in zip(policies, seeds, strict=True)]
        self.clock, self.seed = EpisodeClock(), stream_seed(seed, TURN)
        self.acting = np.zeros(0, dtype=np.int64)

    def __repr__(self) -> str:
        return f"TurnsAgent({len(self.agents)} policies, {self.turn} steps each)"

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        self.clock.tick(first, episode)
        count = np.where(self.clock.step < self.patience, self.members, len(self.agents))  # [N] policies that may act
        if self.turn == 1:  # draw a policy at every step
            drawn_at, offset = self.clock.step, np.zeros_like(self.clock.step)
        else:  # draw the first policy at step 0, then rotate
            drawn_at, offset = np.zeros_like(self.clock.step), self.clock.step // self.turn
        number = uniform_noise(self.seed, self.clock.episode, drawn_at, 1)[:, 0]  # [N] in (0, 1)
        self.acting = ((number * count).astype(np.int64) + offset) % count
        action = np.zeros(len(first), dtype=np.int32)
        for index, agent in enumerate(self.agents):
            is_acting = self.acting == index
            if agent.policy.state_size:
                chosen = agent.act(obs, first, episode)
            else:  # without memory, it need not see frames on which it does not act
                chosen = agent.act(obs, first, np.where(is_acting, self.clock.episode, -1))
            action[is_acting] = chosen[is_acting]
        return action

    @property
    def noisy_logits(self) -> ndarray:
        logits = np.zeros((len(self.acting), max(agent.noisy_logits.shape[1] for agent in self.agents)))
        for index, agent in enumerate(self.agents):
            rows = np.flatnonzero((self.acting == index) & (self.clock.episode >= 0))
            if len(rows):
                logits[rows] = agent.noisy_logits[rows]
        return logits


def explorers_agent(explorers: Sequence[Policy], turn: int, seed: int, spec: EnvSpec | None = None) -> Agent:
    """Return an agent of one explorer, or of several that take turns of `turn` steps."""
    if len(explorers) == 1:
        return PolicyAgent(explorers[0], seed, WITH_MEMORY, spec)
    return TurnsAgent(explorers, turn, seed, spec)
