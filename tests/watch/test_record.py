"""Recordings equal the evaluated episodes, with large pictures and positions on the map."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from expgen.agents.agent import PolicyAgent, UniformAgent
from expgen.envs.levels import LevelSet
from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.evaluation.evaluate import evaluate
from expgen.networks.actor_critic import Policy
from expgen.watch.record import Recording, record_episode
from expgen.watch.stage import open_follower_stage, open_stage

needs_procgen = pytest.mark.skipif(not is_installed(), reason="needs the ProcGen library (scripts/setup-procgen)")
MOVES = {0: (0, 0), 1: (0, -1), 2: (0, 1), 3: (-1, 0), 4: (1, 0)}


def test_recorded_episode_equals_the_evaluated_one(consensus: Callable[..., Any]) -> None:
    for level in (7, 1003, 5000):
        stage = open_stage("minimaze", LevelSet((level,)), seed=4, time_limit=60)
        recording = record_episode(consensus(seed=4), stage, "expgen", seed=4)
        env = make_env("minimaze", (level,), num_envs=1, seed=4, time_limit=60)
        (episode,) = evaluate(consensus(seed=4), env, episodes=1, seed=4).episodes
        assert (recording.level, recording.episode_return, len(recording.steps), recording.solved) == episode[:4]


def test_record_episode_replays_a_later_episode_of_an_evaluation(consensus: Callable[..., Any]) -> None:
    env = make_env("minimaze", range(1000, 1004), num_envs=2, seed=0, time_limit=30)
    episodes = evaluate(consensus(), env, episodes=4, seed=0).episodes
    stage = open_stage("minimaze", LevelSet(range(1000, 1004)), time_limit=30)
    for number, episode in enumerate(episodes):
        recording = record_episode(consensus(), stage, "expgen", level=episode.level, episode=number)
        assert (recording.level, recording.episode_return, len(recording.steps), recording.solved) == episode[:4]


def test_positions_follow_the_actions_and_match_the_film(mixed: Recording) -> None:
    level_map = mixed.level_map
    assert level_map is not None and (level_map.rows, level_map.columns) == (11, 11)
    tile = mixed.film.shape[0] // 11
    for t, step in enumerate(mixed.steps):
        row, column = step.position or (-1, -1)
        assert (mixed.seen[t][row, column] == 255).all()  # the agent is white in minimaze
        assert (mixed.film[t][row * tile + tile // 2, column * tile + tile // 2] == 255).all()
        if t + 1 < len(mixed.steps):
            moved = tuple(np.add((row, column), MOVES[step.action]))
            assert mixed.steps[t + 1].position in (moved, (row, column))
    assert len({step.position for step in mixed.steps}) <= (level_map.reachable or 0)


def test_wall_follower_visits_all_reachable_cells() -> None:
    follower, stage = open_follower_stage("minimaze", LevelSet((1003,)))
    recording = record_episode(follower, stage, "wall follower")
    assert recording.level_map is not None
    assert len({step.position for step in recording.steps}) == recording.level_map.reachable


def test_record_episode_rejects_a_stage_within_an_episode() -> None:
    stage = open_stage("gymnasium:CartPole-v1", LevelSet((1, 2)))
    stage.env.act(np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="middle of an episode"):
        record_episode(UniformAgent(2), stage, "random")


def test_vectors_are_shown_as_bars_without_rendering(policy: Policy) -> None:
    stage = open_stage("gymnasium:CartPole-v1", LevelSet((5,)))
    recording = record_episode(UniformAgent(2), stage, "random", level=5)
    assert recording.level == 5 and recording.level_map is None and recording.steps[0].position is None
    assert recording.seen.shape == (64, 4 * 24, 3) and len(recording.film) == len(recording.steps)
    assert recording.actions.actions == ("push left", "push right")


@needs_procgen
@pytest.mark.procgen
class TestProcgen:
    def test_procgen_pictures_are_large_and_observations_unchanged(self) -> None:
        stage = open_stage("procgen:maze", LevelSet((1003,)))
        recording = record_episode(UniformAgent(15), stage, "random", level=1003)
        assert recording.film.shape == (512, 512, 3) and recording.seen.shape == (64, 64, 3)
        env = make_env("procgen:maze", (1003,), num_envs=1)
        for t, step in enumerate(recording.steps[:50]):
            assert (recording.seen[t] == env.observe().obs[0]).all()
            env.act(np.array([step.action], dtype=np.int32))

    def test_wall_follower_visits_the_whole_procgen_maze(self) -> None:
        follower, stage = open_follower_stage("procgen:maze", LevelSet((1012,)))
        recording = record_episode(follower, stage, "wall follower", level=1012)
        level_map = recording.level_map
        assert level_map is not None and (level_map.rows, level_map.columns) == (15, 15)
        positions = [step.position for step in recording.steps]
        assert len(set(positions)) == level_map.reachable
        for one, two in pairwise(positions):
            assert one and two and abs(one[0] - two[0]) + abs(one[1] - two[1]) <= 1


def test_agents_with_different_seeds_play_different_episodes(record: Callable[..., Recording], policy: Policy) -> None:
    one, same, other = ([step.action for step in record(PolicyAgent(policy, seed)).steps] for seed in (0, 0, 1))
    assert one == same != other
