"""How well an agent explores: intrinsic return, novelty and the share of what an oracle finds, episode by episode.

* The intrinsic return is the sum of r_I (Eq. 7, 8) as training pays it, on the view `observation.full`.
* Novelty counts the steps whose frame is new in the episode (Appendix B.2 with every step counted 0 or 1). It is the
  number of distinct frames less one, for the frame an episode opens with is no step's. Whole frames are compared, not
  pooled ones: what is new does not depend on how r_I is set.
* The oracle's share is min(1, novelty / oracle), 1 where there is nothing to find; an episode succeeds where it is 1.

The frame after an episode's last step belongs to the next episode: as in training, that step earns nothing.
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

_STEPS = 64  # steps whose r_I is computed at once


class Mean(NamedTuple):
    """A mean over episodes and its 95 % interval, bootstrapped over levels."""

    value: float
    ci_low: float
    ci_high: float


class ExploredEpisode(NamedTuple):
    """One finished episode, and what its agent explored."""

    episode: Episode
    intrinsic_return: float
    novelty: int
    oracle: int | None  # the most novelty there is to find; None where no oracle exists

    @property
    def share(self) -> float | None:
        """Of the oracle's novelty, at most 1."""
        if self.oracle is None:
            return None
        return min(1.0, self.novelty / self.oracle) if self.oracle else 1.0


class Exploration(NamedTuple):
    """What an agent explored on a list of episodes."""

    intrinsic_return: Mean
    novelty: Mean
    oracle_share: Mean | None
    oracle_success: Mean | None  # how often the share is 1
    evaluation: Evaluation  # the game's own return
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
    """Play `episodes` episodes, the same that `evaluate` plays; `device` computes r_I.

    `env` shows what r_I measures: make it with `full_view=True`.
    """
    watcher = ExplorationWatcher(config, env.num_envs, max(episodes, 0), device)
    played = result_of(play_episodes(agent, env, episodes, seed, watcher, on_episode))
    return watcher.exploration(played, oracle)


def summarize_exploration(rows: list[ExploredEpisode]) -> Exploration:
    """Means and intervals of a list of episodes."""
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
    """Owns the frames whose r_I is not yet computed and, of the episodes under way, which frames they have shown."""

    def __init__(self, config: KnnConfig, num_envs: int, episodes: int, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self.reward = KnnReward(config, num_envs)
        # by number of the episode; the last, −1, is of those that do not count
        self.intrinsic_return = np.zeros(episodes + 1)
        self.novelty = np.full(episodes + 1, -1)  # the frame that an episode opens with is no step's
        self.shown = EpisodeFrames()
        self.steps: list[tuple[ndarray, ndarray, ndarray]] = []  # frame [N, …], first [N] and episode [N] of each

    def watch(self, observation: Observation, episode: ndarray) -> None:
        """Take in what the environments show."""
        self.shown.begin_step(observation.first)
        was_shown = self.shown.add(np.arange(len(episode)), observation.full)
        np.add.at(self.novelty, episode, ~was_shown)
        self.steps.append((observation.full.copy(), observation.first.copy(), episode.copy()))
        if len(self.steps) > _STEPS:
            self._measure()

    def exploration(self, played: list[Episode], oracle: Oracle | None) -> Exploration:
        """Of the episodes that it has watched, which are over by now."""
        if len(self.steps) > 1:
            self._measure()
        level = np.array([episode.level for episode in played])
        most = [None] * len(played) if oracle is None else oracle(level).tolist()
        rows = zip(played, self.intrinsic_return[:-1].tolist(), self.novelty[:-1].tolist(), most, strict=True)
        return summarize_exploration([ExploredEpisode(*row) for row in rows])

    def _measure(self) -> None:
        """Add up r_I of all steps but the last, whose next frame is still to come."""
        frames, firsts, episodes = (np.stack(part) for part in zip(*self.steps, strict=True))
        full, first = (torch.from_numpy(part).to(self.device) for part in (frames, firsts))  # [T+1, N, …]
        reward = self.reward.measure(full, first).cpu().numpy()  # [T, N]
        np.add.at(self.intrinsic_return, episodes[:-1], reward)  # the episode each step was taken in
        self.steps = self.steps[-1:]
