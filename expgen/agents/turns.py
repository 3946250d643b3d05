"""Several explorers that take turns: one acts, all of them see every frame and remember it.

Where one explorer walks in circles on an unseen level, another seldom walks in the same ones. With turns of one step
the explorer that acts is drawn anew each time, which is playing by the mean of their probabilities.
"""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from expgen.agents.agent import Agent, PolicyAgent
from expgen.agents.predict import Predicts
from expgen.envs.vec_env import EnvSpec
from expgen.networks.actor_critic import Policy
from expgen.random import EXPLORERS, TURN, WITH_MEMORY, EpisodeClock, stream_seed, uniform_noise


def explorers_agent(explorers: Sequence[Policy], turn: int, seed: int, spec: EnvSpec | None = None) -> Agent:
    """One explorer by itself, or several that act `turn` steps each, with randomness from `seed`."""
    if len(explorers) == 1:
        return PolicyAgent(explorers[0], seed, WITH_MEMORY, spec)
    return TurnsAgent(explorers, turn, seed, spec)


class TurnsAgent(Predicts):
    """Explorers that act `turn` steps each; who begins an episode is drawn.

    `acting` `[N]` says who acted last, and `noisy_logits` `[N, A]` what its action was the largest of.
    """

    def __init__(self, explorers: Sequence[Policy], turn: int, seed: int = 0, spec: EnvSpec | None = None) -> None:
        self.spec, self.turn = spec, turn
        streams = [WITH_MEMORY, *(EXPLORERS + index for index in range(1, len(explorers)))]
        seeds = [stream_seed(seed, stream) for stream in streams]
        self.agents = [PolicyAgent(policy, own, 0) for policy, own in zip(explorers, seeds, strict=True)]
        self.clock, self.seed = EpisodeClock(), stream_seed(seed, TURN)
        self.acting = np.zeros(0, dtype=np.int64)

    def __repr__(self) -> str:
        return f"TurnsAgent({len(self.agents)} explorers, {self.turn} steps each)"

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        self.clock.tick(first, episode)
        actions = np.stack([agent.act(obs, first, episode) for agent in self.agents])  # [E, N]
        count, turn = len(self.agents), self.clock.step // self.turn
        drawn_at = turn if self.turn == 1 else np.zeros_like(turn)
        number = uniform_noise(self.seed, self.clock.episode, drawn_at, 1)[:, 0]  # [N] in (0, 1)
        self.acting = (number * count).astype(np.int64) + (0 if self.turn == 1 else turn)
        self.acting %= count
        return actions[self.acting, np.arange(len(first))]

    @property
    def noisy_logits(self) -> ndarray:
        every = np.stack([agent.noisy_logits for agent in self.agents])  # [E, N, A]
        return every[self.acting, np.arange(len(self.acting))]
