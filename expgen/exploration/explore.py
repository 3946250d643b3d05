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
    """Owns the frames whose r_I is not yet computed and, of every frame there was, a number that stands for it."""

    def __init__(self, config: KnnConfig, num_envs: int, episodes: int, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self.reward = KnnReward(config, num_envs)
        self.intrinsic_return = np.zeros(episodes + 1)  # by number; the last, −1, is of those that do not count
        self.frame: list[ndarray] = []  # of [N, …]; up to _STEPS + 1, the first of which was the last before
        self.first: list[ndarray] = []  # of [N], likewise
        self.episode: list[ndarray] = []  # of [N], of every step so far
        self.code: list[ndarray] = []  # of [N], likewise: equal where frames are

    def watch(self, observation: Observation, episode: ndarray) -> None:
        """Take in what the environments show."""
        self.frame.append(observation.full.copy())
        self.first.append(observation.first.copy())
        self.episode.append(episode.copy())
        self.code.append(frame_code(observation.full))
        if len(self.frame) > _STEPS:
            self._measure()

    def finish(self) -> tuple[ndarray, ndarray]:
        """Intrinsic return and novelty of every episode, `[episodes]` each."""
        if len(self.frame) > 1:
            self._measure()
        number, code = np.concatenate(self.episode), np.concatenate(self.code)
        counts = number >= 0
        pair = np.unique(np.stack([number[counts].astype(np.uint64), code[counts]], axis=1), axis=0)
        distinct = np.bincount(pair[:, 0].astype(np.int64), minlength=len(self.intrinsic_return) - 1)
        return self.intrinsic_return[:-1], distinct - 1

    def exploration(self, played: list[Episode], oracle: Oracle | None) -> Exploration:
        """Of the episodes that it has watched, which are over by now."""
        intrinsic_return, novelty = self.finish()
        most = None if oracle is None else oracle(np.array([episode.level for episode in played])).tolist()
        rows = [
            ExploredEpisode(episode, float(intrinsic_return[i]), int(novelty[i]), None if most is None else most[i])
            for i, episode in enumerate(played)
        ]
        return summarize_exploration(rows)

    def _measure(self) -> None:
        full = torch.from_numpy(np.stack(self.frame)).to(self.device)  # [T+1, N, …]
        first = torch.from_numpy(np.stack(self.first)).to(self.device)  # [T+1, N]
        reward = self.reward.measure(full, first).cpu().numpy()  # [T, N]
        taken = self.episode[len(self.episode) - len(full) : -1]  # the episode each step was taken in
        np.add.at(self.intrinsic_return, np.stack(taken), reward)
        self.frame, self.first = self.frame[-1:], self.first[-1:]


def frame_code(frame: ndarray) -> ndarray:
    """A number for each frame of `[N, …]`, equal for equal ones and else different: `[N]` uint64.

    Sums of bytes times random 64-bit weights: two frames that differ collide with a chance below 2⁻⁵⁶.
    """
    content = np.ascontiguousarray(frame).reshape(len(frame), -1).view(np.uint8)  # [N, bytes]
    weight = np.random.default_rng(0).integers(2**64, size=content.shape[1], dtype=np.uint64)
    return content @ weight  # modulo 2⁶⁴
