"""Score rows of evaluations, and closing of the environments."""

from typing import Any

import pytest

from expgen.agents.agent import UniformAgent
from expgen.agents.build import LoadedAgent
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.evaluation import evaluate as evaluation_module
from expgen.evaluation.evaluate import Arena, Episode, evaluate, play_levels, result_of
from expgen.evaluation.scores import score_row
from expgen.provenance import commit

LEVELS = LevelSet(range(5, 9))
ARENA = Arena("minimaze", {"time_limit": 15}, episodes=6, seed=3, max_envs=4)


def test_play_levels_equals_evaluate_in_new_environments() -> None:
    heard: list[Episode] = []
    ours = result_of(play_levels(UniformAgent(5, seed=1), ARENA, LEVELS, on_episode=heard.append))
    env = make_env("minimaze", LEVELS, 4, 3, time_limit=15)
    assert ours == evaluate(UniformAgent(5, seed=1), env, 6, 3)
    assert sorted(heard) == sorted(ours.episodes)


def test_arena_has_at_most_one_environment_per_episode() -> None:
    assert ARENA.num_envs == 4 and Arena("minimaze", {}, episodes=3).num_envs == 3


def test_play_levels_closes_environments_when_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def watched(*words: Any, **options: Any) -> Any:
        env = make_env(*words, **options)
        monkeypatch.setattr(env, "close", lambda: closed.append(True))
        return env

    monkeypatch.setattr(evaluation_module, "build_env", watched)
    work = play_levels(UniformAgent(5), ARENA, LEVELS)
    next(work)
    work.close()
    assert closed == [True]


def test_score_row_has_agent_arena_and_settings() -> None:
    settings = {"min_agree": 2, "members": 4}
    loaded = LoadedAgent(UniformAgent(5), "expgen", 7, name="expgen", settings=settings, env_steps=1000, policy=None)
    evaluation = result_of(play_levels(loaded.agent, ARENA, LEVELS))
    row = score_row(loaded, ARENA, "test", LEVELS, evaluation)
    assert (row.algorithm, row.agent, row.settings, row.seed) == ("expgen", "expgen", "min_agree=2 members=4", 7)
    assert (row.game, row.env, row.split, row.levels) == ("minimaze", "minimaze", "test", "5:4")
    assert (row.env_steps, row.episodes, row.commit) == (1000, 6, commit())
    assert (row.mean_return, row.ci_low, row.ci_high) == (evaluation.mean_return, evaluation.ci_low, evaluation.ci_high)
