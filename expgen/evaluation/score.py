"""The one way to a score: an agent plays a set of levels, and what came of it is a row.

Training, `expgen evaluate`, `tune`, bundles and reproductions all come through here.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

from expgen.agents.agent import Agent
from expgen.agents.build import LoadedAgent
from expgen.envs.levels import LevelSet
from expgen.envs.make import build_env
from expgen.evaluation.evaluate import Evaluation, FrameWatcher, OnEpisode, play_episodes, summarize
from expgen.evaluation.scores import Score, Split, settings_text
from expgen.provenance import commit


@dataclass(frozen=True)
class Arena:
    """Where agents are scored, and for how long."""

    env: str  # as build_env takes it
    options: Mapping[str, Any]
    episodes: int
    seed: int = 0  # of the levels drawn
    most_envs: int = 64  # games side by side
    threads: int = 1  # that step them

    @property
    def num_envs(self) -> int:
        """Games side by side; no more than there are episodes."""
        return min(self.most_envs, self.episodes)


def play_levels(
    agent: Agent,
    arena: Arena,
    levels: LevelSet,
    watcher: FrameWatcher | None = None,
    full_view: bool = False,
    on_episode: OnEpisode = lambda episode: None,
) -> Generator[None, None, Evaluation]:
    """What `agent` does on `levels`, in games of its own; gives way once a step.

    `watcher` sees every frame, with `full_view` as r_I is measured on; `on_episode` hears of each episode as it ends.
    """
    where = (arena.env, levels, arena.num_envs, arena.seed, arena.threads, full_view)
    env = build_env(*where, **arena.options)
    try:
        episodes = yield from play_episodes(agent, env, arena.episodes, arena.seed, watcher, on_episode)
    finally:
        env.close()
    return summarize(episodes)


def score_row(loaded: LoadedAgent, arena: Arena, split: Split, levels: LevelSet, evaluation: Evaluation) -> Score:
    """The row of scores.csv that says what `loaded` did on `levels`."""
    return Score(
        algorithm=loaded.algo,
        game=arena.env.partition(":")[2] or arena.env,
        env=arena.env,
        seed=loaded.seed,
        split=split,
        levels=str(levels),
        env_steps=loaded.env_steps,
        episodes=len(evaluation.episodes),
        mean_return=evaluation.mean_return,
        std_return=evaluation.std_return,
        solved_rate=evaluation.solved_rate,
        ci_low=evaluation.ci_low,
        ci_high=evaluation.ci_high,
        agent=loaded.name,
        commit=commit(),
        settings=settings_text(loaded.settings),
    )
