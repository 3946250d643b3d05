"""Scoring: play an agent on a split and make rows of scores.csv and exploration.csv."""

import json
from collections.abc import Collection, Generator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from expgen.agents.agent import Agent
from expgen.agents.build import LoadedAgent
from expgen.agents.consensus import ConsensusAgent
from expgen.envs.levels import LevelSet
from expgen.evaluation.deaths import DeathCount, Deaths
from expgen.evaluation.evaluate import Arena, OnEpisode, play_levels
from expgen.evaluation.scores import Score, Split, append_scores, score_row
from expgen.exploration.explore import Exploration, ExplorationWatcher
from expgen.exploration.oracle import Oracle, make_oracle
from expgen.exploration.rows import EXPLORATION_FILE, append_exploration, exploration_row
from expgen.provenance import commit
from expgen.reward.knn import KnnConfig


class ScoredAgent(NamedTuple):
    """A score row, the agent after its last episode, and exploration measures if it was trained to explore."""

    score: Score
    agent: Agent | None  # None if another process played it
    exploration: Exploration | None
    deaths: Deaths | None = None  # of an agent that votes


def score_agent(
    loaded: LoadedAgent, arena: Arena, split: Split, levels: LevelSet, on_episode: OnEpisode = lambda episode: None
) -> Generator[None, None, ScoredAgent]:
    """Play one agent on one set of levels; yields once a step. Explorers trained on r_I are also measured by r_I."""
    commit()  # cached before the episodes: the checkout may change meanwhile
    reward = loaded.policy.reward if loaded.policy else None
    watcher = ExplorationWatcher(reward, arena.num_envs, arena.episodes) if isinstance(reward, KnnConfig) else None
    count = DeathCount(loaded.agent, on_episode) if isinstance(loaded.agent, ConsensusAgent) else None
    evaluation = yield from play_levels(loaded.agent, arena, levels, watcher, watcher is not None, count or on_episode)
    explored = None
    if watcher is not None:
        explored = watcher.exploration(evaluation.episodes, _oracle(arena.env, json.dumps(dict(arena.options))))
    deaths = count.deaths if count else None
    return ScoredAgent(score_row(loaded, arena, split, levels, evaluation), loaded.agent, explored, deaths)


@cache
def _oracle(env: str, options: str) -> Oracle | None:
    """Return the oracle of an environment, which caches levels. `options` are JSON text, since lists are unhashable."""
    return make_oracle(env, **json.loads(options))


def save_scores(file: Path, scored: Collection[ScoredAgent]) -> None:
    """Append score rows to `file`, and exploration rows to exploration.csv in the same folder."""
    append_scores(file, [one.score for one in scored])
    explored = [exploration_row(one.score, one.exploration) for one in scored if one.exploration is not None]
    if explored and not file.is_char_device():
        append_exploration(file.with_name(EXPLORATION_FILE), explored)
