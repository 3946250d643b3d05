"""Evaluation on a fixed list of episodes, independent of the number of environments."""

import numpy as np
import pytest
import torch
from numpy import ndarray

from expgen.agents.agent import Agent, PolicyAgent, UniformAgent
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec, LevelControl, Observation
from expgen.errors import InputError
from expgen.evaluation.evaluate import Episode, evaluate, play_episodes, summarize
from expgen.networks.actor_critic import NetworkConfig, make_policy

MAZES = {"max_cells": 3, "time_limit": 25}


def make_agent(kind: str, spec: EnvSpec) -> Agent:
    if kind == "uniform":
        return UniformAgent(spec.num_actions, seed=3)
    network = NetworkConfig(features=16, memory="gru" if kind == "gru" else "none")
    return PolicyAgent(make_policy(spec, network, torch.Generator().manual_seed(0), torch.device("cpu")), seed=3)


def run(play) -> list[Episode]:  # type: ignore[no-untyped-def]
    while True:
        try:
            next(play)
        except StopIteration as finished:
            return finished.value


@pytest.mark.parametrize("kind", ["uniform", "policy", "gru"])
def test_episodes_do_not_depend_on_the_number_of_environments(kind: str):
    episodes = []
    for num_envs, env_seed in ((4, 0), (16, 7), (50, 1)):
        env = make_env("minimaze", levels="100:10", num_envs=num_envs, seed=env_seed, **MAZES)
        episodes.append(evaluate(make_agent(kind, env.spec), env, episodes=30, seed=5).episodes)
    assert episodes[0] == episodes[1] == episodes[2]
    assert len({episode.length for episode in episodes[0]}) > 3  # short and long episodes


def test_levels_are_played_equally_often_in_an_order_set_by_the_seed():
    def levels(seed: int) -> list[int]:
        env = make_env("minimaze", levels="100:10", num_envs=4, **MAZES)
        return [episode.level for episode in evaluate(UniformAgent(5), env, 30, seed).episodes]

    assert sorted(levels(0)) == sorted([*range(100, 110)] * 3)
    assert levels(0) == levels(0) != levels(1)


def test_repeated_evaluation_gives_the_same_result():
    env = make_env("minimaze", levels=20, num_envs=4, **MAZES)
    agent = make_agent("gru", env.spec)
    assert evaluate(agent, env, 15).episodes == evaluate(agent, env, 15).episodes


class WithoutControl:
    """Episodes of environment n last lengths[n] steps with reward n + 1 at the end; actions must be zeros."""

    def __init__(self, lengths: list[int], elapsed: list[int]) -> None:
        self.spec, self.levels, self.num_envs = EnvSpec("fake", (1,), "float32", 2), LevelSet.parse("all"), len(lengths)
        self.lengths, self.elapsed = np.array(lengths), np.array(elapsed)
        self.count = np.zeros(self.num_envs, dtype=np.int32)
        self.reward = np.zeros(self.num_envs, dtype=np.float32)
        self.first = self.elapsed == 0

    def act(self, action: ndarray) -> None:
        self.elapsed += 1
        self.first = self.elapsed >= self.lengths
        self.reward = (self.first * (np.arange(self.num_envs) + 1)).astype(np.float32)
        self.elapsed[self.first] = 0
        self.count += self.first

    def observe(self) -> Observation:
        obs = self.elapsed[:, None].astype(np.float32)
        solved = self.first & (self.reward == 2)
        level = self.count * 10 + np.arange(self.num_envs)
        return Observation(obs, obs, self.reward, self.first, level, solved, self.first & ~solved)

    def close(self) -> None: ...


class Listening:
    """Returns zeros and records the episode numbers."""

    def __init__(self) -> None:
        self.heard: list[list[int]] = []

    def act(self, obs: ndarray, first: ndarray, episode: ndarray | None = None) -> ndarray:
        assert episode is not None
        self.heard.append(episode.tolist())
        return np.zeros(len(first), dtype=np.int32)


def test_environments_without_level_control_play_a_fixed_quota():
    """Five episodes in two environments: three and two, although the first environment is faster."""
    env = WithoutControl(lengths=[1, 4], elapsed=[0, 0])
    assert not isinstance(env, LevelControl)
    agent = Listening()
    episodes = run(play_episodes(agent, env, 5))
    assert episodes == [
        Episode(0, 1.0, 1, False, number=0),
        Episode(1, 2.0, 4, True, number=1),
        Episode(10, 1.0, 1, False, number=2),
        Episode(11, 2.0, 4, True, number=3),
        Episode(20, 1.0, 1, False, number=4),
    ]
    assert agent.heard == [[0, 1], [2, 1], [4, 1], [-1, 1], [-1, 3], [-1, 3], [-1, 3], [-1, 3]]


def test_episode_in_progress_is_not_counted_without_level_control():
    env = WithoutControl(lengths=[3, 3], elapsed=[0, 1])
    agent = Listening()
    episodes = run(play_episodes(agent, env, 2))
    assert [(episode.length, episode.episode_return) for episode in episodes] == [(3, 1.0), (3, 2.0)]
    assert agent.heard[0] == [0, -1] and agent.heard[2] == [0, 1]


def test_evaluate_with_more_environments_than_episodes():
    episodes = run(play_episodes(Listening(), WithoutControl([2, 3, 4], [0, 0, 0]), 2))
    assert [episode.length for episode in episodes] == [2, 3]


def test_play_episodes_yields_once_a_step():
    assert len(list(play_episodes(Listening(), WithoutControl([2], [0]), 3))) == 6


@pytest.mark.parametrize("episodes", [0, -1])
def test_evaluate_rejects_zero_episodes(episodes: int):
    with pytest.raises(InputError, match=f"episodes is {episodes}; accepted: 1 to 10000000"):
        evaluate(UniformAgent(2), WithoutControl([2], [0]), episodes)


def test_evaluate_ignores_agent_spec_of_another_type():
    agent = UniformAgent(5)
    agent.spec = "a word of the user's own"  # type: ignore[attr-defined]
    assert len(evaluate(agent, make_env("minimaze", levels=5, num_envs=2, **MAZES), 3).episodes) == 3


def test_evaluation_summary_by_hand():
    rows = [Episode(1, 0.0, 9, False), Episode(2, 10.0, 5, True), Episode(3, 2.0, 5, False), Episode(4, 4.0, 5, True)]
    summary = summarize(rows)
    assert (summary.mean_return, summary.solved_rate) == (4.0, 0.5)
    assert summary.std_return == pytest.approx((56 / 3) ** 0.5)  # 16 + 36 + 4 + 0 over n − 1
    assert 0 <= summary.ci_low < 4 < summary.ci_high <= 10
    assert summary.episodes == rows


def test_evaluation_summary_of_one_episode():
    summary = summarize([Episode(1, 3.0, 9, True)])
    assert summary[:5] == (3.0, 0.0, 1.0, 3.0, 3.0)
