"""Agents: what plays at test time. No optimiser, no rollout, no reset(): `first` says when to forget."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy import ndarray

from expgen.agents.predict import Predicts
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
    """Chooses one action per environment.

    One that knows what it was made for may say so in an attribute `spec`, which `evaluate` compares with where it is
    to play.
    """

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        """`obs` `[N, …]`, `first` `[N]` → actions `[N]` int32.

        `episode` `[N]` names the episode each environment plays: the agent's randomness depends on it and on the
        step within it, not on the batch. Without it the agent numbers episodes itself. Below 0 it is one that counts
        for nothing, over which no policy is asked: any action will do.
        """


def check_made_for(player: object, spec: EnvSpec) -> None:
    """An InputError where an agent says that it was made for other observations or actions than those of `spec`."""
    made_for = getattr(player, "spec", None)
    if isinstance(made_for, EnvSpec) and _interface(made_for) != _interface(spec):
        what = f"env is {spec.name!r} with {_interface(spec)}"
        raise InputError(f"{what}; accepted by this agent of {made_for.name}: {_interface(made_for)}")


def _interface(spec: EnvSpec) -> str:
    return f"observations {spec.obs_shape} {spec.obs_dtype} and {spec.num_actions} actions"


class PolicyAgent(Predicts):
    """A policy that samples its actions; remembers what the policy's memory asks for.

    `stream` tells apart agents that are seeded alike and act together; by itself an agent's stream says whether its
    policy has memory, which is what sets an explorer apart from the members it plays beside. `output` is what the
    policy said last, for the inspector, and `noisy_logits` `[N, A]` what its action is the largest of, for `--hedge`.
    `spec` is what the policy was made for, where that is known.
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
        what = f"{self.spec.name}, " if self.spec else ""
        return f"PolicyAgent({what}{'with' if self.policy.state_size else 'no'} memory, on {self.device})"

    @torch.no_grad()
    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        self.clock.tick(first, episode)
        if len(self.state) != len(first):
            self.state = torch.zeros(len(first), self.policy.state_size, device=self.device)
        action = np.zeros(len(first), dtype=np.int32)
        asked = np.flatnonzero(self.clock.episode >= 0)  # [n]
        if len(asked) == 0:
            return action
        rows = slice(None) if len(asked) == len(first) else asked
        pixels = torch.from_numpy(obs[rows]).to(self.device).unsqueeze(0)  # [1, n, …]
        begins = torch.from_numpy(np.asarray(first, dtype=bool)[rows]).to(self.device).unsqueeze(0)  # [1, n]
        self.output = output = self.policy(pixels, begins, self.state[rows])
        self.state[rows] = output.state
        logits = output.logits[0].cpu().numpy()  # [n, A]
        noise = gumbel_noise(self.seed, self.clock.episode[rows], self.clock.step[rows], logits.shape[1])
        noisy = logits + noise
        action[rows] = noisy.argmax(1)
        self.noisy_logits = np.zeros((len(first), logits.shape[1]), noisy.dtype)
        self.noisy_logits[rows] = noisy
        return action


class UniformAgent(Predicts):
    """Every action equally likely: the yardstick below which nothing was learnt."""

    def __init__(self, num_actions: int, seed: int = 0) -> None:
        self.num_actions, self.seed = num_actions, stream_seed(seed, UNIFORM)
        self.clock = EpisodeClock()

    def __repr__(self) -> str:
        return f"UniformAgent({self.num_actions} actions)"

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        self.clock.tick(first, episode)
        number = uniform_noise(self.seed, self.clock.episode, self.clock.step, 1)[:, 0]
        return (number * self.num_actions).astype(np.int32)


class TurnsAgent(Predicts):
    """Policies that act `turn` steps each; who begins an episode is drawn. Those with memory see every frame.

    With `patience` the first so many steps of an episode are those of the first `members` policies alone: who knows the
    way is soon there, and where it takes long, the explorers join in.

    Where one walks in circles on an unseen level, another seldom walks in the same ones. With turns of one step whoever
    acts is drawn anew each time, which is playing by the mean of their probabilities. `acting` `[N]` says who acted
    last, and `noisy_logits` `[N, A]` what its action was the largest of.
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
            raise InputError(f"--patience is {patience} but not both members and explorers play; accepted: 0")
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
        turn = self.clock.step // self.turn
        count = np.where(self.clock.step < self.patience, self.members, len(self.agents))  # [N] of those who play
        drawn_at = turn if self.turn == 1 else np.zeros_like(turn)
        number = uniform_noise(self.seed, self.clock.episode, drawn_at, 1)[:, 0]  # [N] in (0, 1)
        self.acting = (number * count).astype(np.int64) + (0 if self.turn == 1 else turn)
        self.acting %= count
        actions = np.stack([self._ask(index, obs, first, episode) for index in range(len(self.agents))])  # [E, N]
        return actions[self.acting, np.arange(len(first))]

    def _ask(self, index: int, obs: ndarray, first: ndarray, episode: ndarray | None) -> ndarray:
        """The actions `[N]` of one of them; where it has no memory and does not act, it is not asked."""
        agent = self.agents[index]
        if not agent.policy.state_size:
            episode = np.where(self.acting == index, self.clock.episode, -1)
        return agent.act(obs, first, episode)

    @property
    def noisy_logits(self) -> ndarray:
        logits: ndarray | None = None
        for index, agent in enumerate(self.agents):
            rows = np.flatnonzero((self.acting == index) & (self.clock.episode >= 0))
            if len(rows):
                logits = np.zeros((len(self.acting), agent.noisy_logits.shape[1])) if logits is None else logits
                logits[rows] = agent.noisy_logits[rows]
        return np.zeros((len(self.acting), 0)) if logits is None else logits


def explorers_agent(explorers: Sequence[Policy], turn: int, seed: int, spec: EnvSpec | None = None) -> Agent:
    """One explorer by itself, or several that act `turn` steps each, with randomness from `seed`."""
    if len(explorers) == 1:
        return PolicyAgent(explorers[0], seed, WITH_MEMORY, spec)
    return TurnsAgent(explorers, turn, seed, spec)
