"""Prioritized Level Replay (Jiang, Grefenstette and Rocktäschel 2021): PPO on the levels it can learn most from.

Only the choice of levels differs from PPO. Every rollout scores the levels it played by the size of the advantages
there; the next episode replays a level drawn by the rank of its score, mixed with how long it has not been played.
Where we differ from the authors' code: a step is credited to the level its action was taken in (theirs credits the one
reported after it), and random numbers come from a counter, so that a resumed run draws the same levels.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from expgen.algorithms.ppo import PPOConfig
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.random import counter_hash
from expgen.rollout.minibatch import Order
from expgen.rollout.rollout import Rollout
from expgen.settings import changed_default, setting

SAVED = ("drawn", "has_opened", "score", "staleness", "seen")  # attributes of LevelReplay that a checkpoint holds


@dataclass(frozen=True)
class PlrConfig(PPOConfig):
    """PPO's settings as PLR's authors have them, and those of the replay."""

    minibatch_order: Order = changed_default(PPOConfig, "minibatch_order", "shuffled")
    advantage_epsilon: float = changed_default(PPOConfig, "advantage_epsilon", 1e-5)
    rank_temperature: float = setting(0.1, "β: the lower, the more often the highest scores are replayed", low=1e-3)
    staleness_coef: float = setting(0.1, "ρ: share of replays drawn by staleness and not by score", low=0, high=1)
    replay_threshold: float = setting(
        1.0, "share of the levels that must be seen before any is replayed", low=0, high=1
    )


def segment_scores(advantage: ndarray, first: ndarray, level: ndarray) -> tuple[ndarray, ndarray]:
    """S = mean |A_t| = mean |R_t − V_t| over each episode's steps in a rollout, and the level it belongs to.

    `advantage` `[T, N]` not normalised, `first` and `level` `[T+1, N]`. In the order they are to be written: episodes
    that ended, environment by environment and in time, then those that go on.
    """
    num_steps, num_envs = advantage.shape
    opens = first[:-1].T.copy()  # [N, T]
    opens[:, 0] = True
    start = np.flatnonzero(opens)  # [segments] into env · T + time
    length = np.diff(start, append=num_steps * num_envs)
    score = np.add.reduceat(np.abs(advantage).T.ravel().astype(np.float64), start) / length
    end = start + length  # one past the last step: the next segment's start, or the column's end
    goes_on = (end % num_steps == 0) & ~first[-1, start // num_steps]
    order = np.concatenate([np.flatnonzero(~goes_on), np.flatnonzero(goes_on)])
    return level[:-1].T.ravel()[start][order], score[order]


def rank_weights(score: ndarray, seen: ndarray, temperature: float) -> ndarray:
    """P_S(i) ∝ (1 / rank_i)^{1/β} over the levels seen; rank 1 has the highest score; ranks count unseen levels too."""
    rank = np.empty(len(score))
    rank[np.argsort(-score, kind="stable")] = np.arange(1, len(score) + 1)
    return _normalized(np.where(seen, rank ** (-1 / temperature), 0))


def staleness_weights(staleness: ndarray, seen: ndarray) -> ndarray:
    """P_C(i) ∝ draws since level i was last drawn, over the levels seen."""
    return _normalized(np.where(seen, staleness, 0))


def _normalized(weight: ndarray) -> ndarray:
    return weight / max(weight.sum(), np.finfo(float).tiny)


class LevelReplay:
    """A LevelChooser: owns the score, the staleness and the seen mark of each training level."""

    def __init__(self, config: PlrConfig, levels: LevelSet, num_envs: int, seed: int) -> None:
        if levels.seeds is None:
            raise InputError("--levels is 'all'; accepted for --algo plr: a finite set, whose levels can be scored")
        self.config = config
        self.levels = np.asarray(levels.seeds, dtype=np.int64)  # [L]
        self._index = {level: index for index, level in enumerate(self.levels.tolist())}
        self._key = counter_hash(np.array([seed], dtype=np.uint64), np.uint64(0))  # [1]
        self.drawn = np.zeros(1, dtype=np.uint64)  # random numbers used so far
        self.has_opened = np.zeros(1, dtype=bool)
        self.score = np.zeros(len(self.levels))
        self.staleness = np.zeros(len(self.levels))
        self.seen = np.zeros(len(self.levels), dtype=bool)
        self._by_score = self.score.copy()  # P_S, which changes once a rollout

    def choose(self, env: ndarray) -> ndarray:
        """At the start the levels in order; afterwards one draw for each environment."""
        if not self.has_opened:
            self.has_opened[:] = True
            return self.levels[env % len(self.levels)]
        return self.levels[[self.draw() for _ in env]]

    def draw(self) -> int:
        """The index of the next level: an unseen one or a replay; the replay's chance is the share seen so far."""
        share = self.seen.mean()
        replays = self.seen.any() and share >= self.config.replay_threshold and self._uniform() < share
        weight = self.replay_weights() if replays else _normalized((~self.seen).astype(float))
        total = weight.cumsum()
        index = int(np.searchsorted(total, self._uniform() * total[-1], side="right"))
        self.staleness += 1
        self.staleness[index] = 0
        return index

    def replay_weights(self) -> ndarray:
        """P = (1 − ρ) P_S + ρ P_C."""
        stale = staleness_weights(self.staleness, self.seen)
        coef = self.config.staleness_coef if stale.any() else 0.0
        return (1 - coef) * self._by_score + coef * stale

    def learn(self, rollout: Rollout) -> None:
        """Score what was played; a score replaces the one before. The CPU waits for the GPU here."""
        advantage = rollout.advantage.cpu().numpy()
        level, score = segment_scores(advantage, rollout.host_first.numpy(), rollout.host_level.numpy())
        index = [self._index[one] for one in level.tolist()]
        self.score[index] = score  # where a level is named twice the last one stays
        self.seen[index] = True
        self._rank()

    def _rank(self) -> None:
        self._by_score = rank_weights(self.score, self.seen, self.config.rank_temperature)

    def _uniform(self) -> float:
        """In [0, 1)."""
        word = counter_hash(self._key, self.drawn)
        self.drawn += np.uint64(1)
        return float(word[0] >> np.uint64(11)) * 2.0**-53

    def summary(self) -> dict[str, float]:
        """How many levels have a score, and its mean over them."""
        return {"levels_seen": float(self.seen.sum()), "level_score": float(self.score.sum() / max(1, self.seen.sum()))}

    def state(self) -> dict[str, ndarray]:
        return {name: getattr(self, name).copy() for name in SAVED}

    def load_state(self, state: Mapping[str, ndarray]) -> None:
        for name in SAVED:
            getattr(self, name)[:] = state[name]
        self._rank()
