"""Level replay: sample training levels by their learning potential (PLR, Jiang et al. 2021, arXiv 2010.03934).

Each rollout scores the levels it played by their mean absolute advantage, before the update and whatever the algorithm.
The level of a new episode is drawn by the rank of its score, mixed with the time since it was last drawn. Used by
`--algo plr` and, with any other algorithm that leaves the choice of levels to the environment, by `--level-replay`.

Differences from the authors' code: a step is credited to the level in which its action was taken (theirs credits the
level reported after it), and random numbers come from a counter, so that a resumed run draws the same levels.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.random import counter_hash
from expgen.rollout.level_choice import LevelChooser
from expgen.rollout.rollout import Rollout
from expgen.settings import setting


@dataclass(frozen=True)
class ReplayConfig:
    """Settings of the level sampler, with the PLR authors' values."""

    rank_temperature: float = setting(0.1, "β: a lower value replays high-score levels more often", low=1e-3)
    staleness_coef: float = setting(0.1, "ρ: share of replays drawn by staleness instead of score", low=0, high=1)
    replay_threshold: float = setting(1.0, "share of the levels to play before replay begins", low=0, high=1)


def segment_scores(advantage: ndarray, first: ndarray, level: ndarray) -> tuple[ndarray, ndarray]:
    """Return the level of each episode in a rollout and its score S = mean |A_t| = mean |R_t − V_t| over its steps.

    `advantage` `[T, N]` is not normalised; `first` and `level` are `[T+1, N]`. Finished episodes come first, ordered by
    environment and time, then unfinished ones: later scores of the same level overwrite earlier ones.
    """
    num_steps, num_envs = advantage.shape
    opens = first[:-1].T.copy()  # [N, T]
    opens[:, 0] = True
    start = np.flatnonzero(opens)  # [segments] index env · T + time of each segment's first step
    length = np.diff(start, append=num_steps * num_envs)
    score = np.add.reduceat(np.abs(advantage).T.ravel().astype(np.float64), start) / length
    end = start + length  # exclusive: the next segment's start, or the end of the environment's T steps
    is_unfinished = (end % num_steps == 0) & ~first[-1, start // num_steps]
    order = np.concatenate([np.flatnonzero(~is_unfinished), np.flatnonzero(is_unfinished)])
    return level[:-1].T.ravel()[start][order], score[order]


def rank_weights(score: ndarray, seen: ndarray, temperature: float) -> ndarray:
    """P_S(i) ∝ (1 / rank_i)^{1/β} over the levels seen; rank 1 is the highest score; unseen levels have ranks too."""
    rank = np.empty(len(score))
    rank[np.argsort(-score, kind="stable")] = np.arange(1, len(score) + 1)
    return _normalized(np.where(seen, rank ** (-1 / temperature), 0))


def staleness_weights(staleness: ndarray, seen: ndarray) -> ndarray:
    """P_C(i) ∝ draws since level i was last drawn, over the levels seen."""
    return _normalized(np.where(seen, staleness, 0))


def _normalized(weight: ndarray) -> ndarray:
    return weight / max(weight.sum(), np.finfo(float).tiny)


class LevelReplay(LevelChooser):
    """Owns the score and staleness of each training level, and draws levels by them."""

    def __init__(self, config: ReplayConfig, levels: LevelSet, num_envs: int, seed: int) -> None:
        if levels.seeds is None:
            raise InputError("--levels is 'all'; accepted with level replay: a finite set of levels")
        self.config = config
        self.levels = np.asarray(levels.seeds, dtype=np.int64)  # [L]
        self._index = {level: index for index, level in enumerate(self.levels.tolist())}
        self._key = counter_hash(np.array([seed], dtype=np.uint64), np.uint64(0))  # [1]
        self.drawn = np.zeros(1, dtype=np.uint64)  # random numbers used so far
        self.has_opened = np.zeros(1, dtype=bool)  # whether the first levels have been chosen
        self.score = np.zeros(len(self.levels))
        self.staleness = np.zeros(len(self.levels))  # draws since each level was last drawn
        self.seen = np.zeros(len(self.levels), dtype=bool)  # has a score
        self._score_weights = self.score.copy()  # P_S, recomputed once per rollout

    def choose(self, env: ndarray) -> ndarray:
        """Return the first levels in order at the start of training, then one random draw per environment."""
        if not self.has_opened:
            self.has_opened[:] = True
            return self.levels[env % len(self.levels)]
        return self.levels[[self.draw() for _ in env]]

    def draw(self) -> int:
        """Draw the index of the next level: a replay with probability equal to the share seen, else an unseen level."""
        share = self.seen.mean()
        is_replay = self.seen.any() and share >= self.config.replay_threshold and self._uniform() < share
        weight = self.replay_weights() if is_replay else _normalized((~self.seen).astype(float))
        total = weight.cumsum()
        index = int(np.searchsorted(total, self._uniform() * total[-1], side="right"))
        self.staleness += 1
        self.staleness[index] = 0
        return index

    def replay_weights(self) -> ndarray:
        """P = (1 − ρ) P_S + ρ P_C."""
        stale = staleness_weights(self.staleness, self.seen)
        coef = self.config.staleness_coef if stale.any() else 0.0
        return (1 - coef) * self._score_weights + coef * stale

    def learn(self, rollout: Rollout) -> None:
        """Score the levels of the rollout; a new score replaces the old one. The CPU waits for the GPU here."""
        advantage = rollout.advantage.cpu().numpy()
        level, score = segment_scores(advantage, rollout.host_first.numpy(), rollout.host_level.numpy())
        index = [self._index[seed] for seed in level.tolist()]
        self.score[index] = score  # if a level occurs more than once, its last score stays
        self.seen[index] = True
        self._update_score_weights()

    def _update_score_weights(self) -> None:
        self._score_weights = rank_weights(self.score, self.seen, self.config.rank_temperature)

    def _uniform(self) -> float:
        """Draw from [0, 1)."""
        word = counter_hash(self._key, self.drawn)
        self.drawn += np.uint64(1)
        return float(word[0] >> np.uint64(11)) * 2.0**-53

    def summary(self) -> dict[str, float]:
        """Return the number of levels with a score and their mean score."""
        return {"levels_seen": float(self.seen.sum()), "level_score": float(self.score.sum() / max(1, self.seen.sum()))}

    def state(self) -> dict[str, ndarray]:
        return {name: array.copy() for name, array in self._saved().items()}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        for name, array in self._saved().items():
            array[:] = state[name]
        self._update_score_weights()

    def _saved(self) -> dict[str, ndarray]:
        scores = {"score": self.score, "staleness": self.staleness, "seen": self.seen}
        return {"drawn": self.drawn, "has_opened": self.has_opened, **scores}
