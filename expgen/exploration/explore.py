"""Exploration measures per episode: intrinsic return, novelty and share of an oracle's novelty.

* The intrinsic return is the sum of r_I (Eq. 7, 8) as paid in training, on the view `observation.full`.
* Novelty is the number of steps whose frame is new in the episode (Appendix B.2 with every step counted as 0 or 1),
  i.e. the number of distinct frames minus 1. Frames are compared unpooled: novelty does not depend on r_I's settings.
* The oracle share is min(1, novelty / oracle), and 1 if the oracle's novelty is 0; an episode is a success if it is 1.

The frame after an episode's last step belongs to the next episode, so that step earns nothing, as in training.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray

from expgen.agents.acted_frames import EpisodeFrames
from expgen.agents.agent import Agent
from expgen.envs.vec_env import Observation, VecEnv
from expgen.evaluation.evaluate import (
    Episode,
    Evaluation,
    OnEpisode,
    mean_interval,
    play_episodes,
    result_of,
    summarize,
)
from expgen.exploration.oracle import Oracle
from expgen.reward.knn import KnnConfig, KnnReward

_BATCH_STEPS = 64  # steps whose r_I is computed together


class Mean(NamedTuple):
    """A mean over episodes and its 95 % interval, bootstrapped over levels."""

    value: float
    ci_low: float
    ci_high: float


class ExploredEpisode(NamedTuple):
    """One finished episode and its exploration measures."""

    episode: Episode
    intrinsic_return: float
    novelty: int
    oracle: int | None  # the oracle's novelty; None without an oracle

    @property
    def share(self) -> float | None:
        """Share of the oracle's novelty, at most 1."""
        if self.oracle is None:
            return None
        return min(1.0, self.novelty / self.oracle) if self.oracle else 1.0


class Exploration(NamedTuple):
    """Exploration measures of an agent, averaged over episodes."""

    intrinsic_return: Mean
    novelty: Mean
    oracle_share: Mean | None
    oracle_success: Mean | None  # share of episodes whose oracle share is 1
    evaluation: Evaluation  # of the game's return
    episodes: list[ExploredEpisode]


def explore(
    agent: Agent,
    env: VecEnv,
    config: KnnConfig,
    oracle: Oracle | None = None,
    episodes: int = 500,
    seed: int = 0,
    device: torch.device | str = "cpu",
    on_episode: OnEpisode = lambda episode: None,
) -> Exploration:
    """Play `episodes` episodes, the same as `evaluate`, and measure exploration; r_I is computed on `device`.

    Make `env` with `full_view=True`, since r_I is measured on `full`.
    """
    watcher = ExplorationWatcher(config, env.num_envs, max(episodes, 0), device)
    played = result_of(play_episodes(agent, env, episodes, seed, watcher, on_episode))
    return watcher.exploration(played, oracle)


def summarize_exploration(rows: list[ExploredEpisode]) -> Exploration:
    """Return means and intervals over episodes."""
    level = np.array([row.episode.level for row in rows])

    def mean(value: list[float]) -> Mean:
        return Mean(float(np.mean(value)), *mean_interval(np.array(value, dtype=np.float64), level))

    share = [row.share for row in rows if row.share is not None]
    return Exploration(
        intrinsic_return=mean([row.intrinsic_return for row in rows]),
        novelty=mean([row.novelty for row in rows]),
        oracle_share=mean(share) if share else None,
        oracle_success=mean([float(value == 1) for value in share]) if share else None,
        evaluation=summarize([row.episode for row in rows]),
        episodes=rows,
    )


class ExplorationWatcher:
    """Measures intrinsic return and novelty of episodes while they are played."""

    def __init__(self, config: KnnConfig, num_envs: int, episodes: int, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self.reward = KnnReward(config, num_envs)
        # indexed by episode number; the last entry, number −1, collects episodes that do not count
        self.intrinsic_return = np.zeros(episodes + 1)
        self.novelty = np.full(episodes + 1, -1)  # the first frame of an episode is not the result of a step
        self.frames = EpisodeFrames()
        self.steps: list[tuple[ndarray, ndarray, ndarray]] = []  # frame [N, …], first [N], episode [N]; r_I pending

    def watch(self, observation: Observation, episode: ndarray) -> None:
        """Record an observation; `episode` `[N]` is the number of each environment's episode."""
        self.frames.begin_step(observation.first)
        is_known = self.frames.add(np.arange(len(episode)), observation.full)
        np.add.at(self.novelty, episode, ~is_known)
        self.steps.append((observation.full.copy(), observation.first.copy(), episode.copy()))
        if len(self.steps) > _BATCH_STEPS:
            self._add_rewards()

    def exploration(self, played: list[Episode], oracle: Oracle | None) -> Exploration:
        """Return the measures of the watched episodes `played`, all of which have ended."""
        if len(self.steps) > 1:
            self._add_rewards()
        level = np.array([episode.level for episode in played])
        best = [None] * len(played) if oracle is None else oracle(level).tolist()
        rows = zip(played, self.intrinsic_return[:-1].tolist(), self.novelty[:-1].tolist(), best, strict=True)
        return summarize_exploration([ExploredEpisode(*row) for row in rows])

    def _add_rewards(self) -> None:
        """Compute and add r_I of all recorded steps but the last, whose next frame is not known yet."""
        frames, firsts, episodes = (np.stack(part) for part in zip(*self.steps, strict=True))
        full, first = (torch.from_numpy(part).to(self.device) for part in (frames, firsts))  # [T+1, N, …]
        reward = self.reward.measure(full, first).cpu().numpy()  # [T, N]
        np.add.at(self.intrinsic_return, episodes[:-1], reward)
        self.steps = self.steps[-1:]
