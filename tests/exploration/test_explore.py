"""Exploration measures against the training reward, slow counts and values by hand."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy import ndarray

from expgen.agents.agent import UniformAgent
from expgen.envs.levels import LevelSet
from expgen.envs.make import make_env
from expgen.envs.vec_env import EnvSpec, Observation
from expgen.errors import InputError
from expgen.evaluation.evaluate import Episode, evaluate, play_episodes
from expgen.exploration import explore as exploration
from expgen.exploration.explore import ExploredEpisode, explore, summarize_exploration
from expgen.exploration.oracle import make_oracle
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.rollout.rollout import Rollout

MAZES = {"max_cells": 3, "time_limit": 30}


class Recorder:
    """Records all observations."""

    def __init__(self) -> None:
        self.full: list[ndarray] = []
        self.first: list[ndarray] = []
        self.episode: list[ndarray] = []

    def watch(self, observation: Observation, episode: ndarray) -> None:
        self.full.append(observation.full.copy())
        self.first.append(observation.first.copy())
        self.episode.append(episode.copy())


@pytest.mark.parametrize(
    "config",
    [
        KnnConfig(pool=1),
        KnnConfig(1, "l0", pool=1),
        KnnConfig(3, "l2", "log", memory_length=5, pool=2),
        KnnConfig(2, "l0", "log1p"),
    ],
)
def test_intrinsic_return_and_novelty_match_training_reward_and_slow_count(
    config: KnnConfig, monkeypatch: pytest.MonkeyPatch
):
    """Bit-equal to the rewards of one long rollout of the same steps, summed by episode."""
    monkeypatch.setattr(exploration, "_BATCH_STEPS", 7)

    def walk() -> tuple[UniformAgent, Any]:
        return UniformAgent(5, seed=1), make_env("minimaze", 10, num_envs=4, **MAZES)

    recorder = Recorder()
    for _ in play_episodes(*walk(), episodes=13, seed=2, watcher=recorder):
        pass
    spec = EnvSpec("recorder", recorder.full[0].shape[1:], "uint8", 5)
    rollout = Rollout(spec, len(recorder.full) - 1, 4, 0, torch.device("cpu"))
    rollout.full.copy_(torch.from_numpy(np.stack(recorder.full)))
    rollout.host_first.copy_(torch.from_numpy(np.stack(recorder.first)))
    rollout.finish()
    reward = KnnReward(config, 4)(rollout).double().numpy()
    number = np.stack(recorder.episode)
    result = explore(*walk(), config, None, 13, 2)
    for i, row in enumerate(result.episodes):
        assert row.intrinsic_return == pytest.approx(reward[number[:-1] == i].sum(), abs=1e-9)
        frames = np.stack(recorder.full)[number == i].reshape(
            -1, recorder.full[0][0].size
        )  # of one environment, in order
        seen: set[bytes] = {frames[0].tobytes()}
        new = 0
        for frame in frames[1:]:
            new += int(min(int((frame != np.frombuffer(old, np.uint8)).sum()) for old in seen) > 0)  # L0
            seen.add(frame.tobytes())
        assert row.novelty == new
    assert result.oracle_share is None and result.oracle_success is None


def test_explore_plays_same_episodes_as_evaluate_for_any_num_envs():
    results = []
    for num_envs in (3, 16, 40):
        env = make_env("minimaze", "50:10", num_envs=num_envs, seed=num_envs, **MAZES)
        results.append(explore(UniformAgent(5), env, KnnConfig(pool=1), make_oracle("minimaze", **MAZES), 20, 5))
        played = evaluate(UniformAgent(5), env, 20, 5)
        assert results[-1].evaluation == played
        assert [row.episode for row in results[-1].episodes] == played.episodes
    assert results[0] == results[1] == results[2]
    assert all(row.oracle is not None and row.novelty <= row.oracle for row in results[0].episodes)


class Corridor:
    """One environment without level control that shows the values of `shown`; a negative one opens an episode."""

    def __init__(self, shown: list[int]) -> None:
        self.spec, self.levels, self.num_envs = EnvSpec("fake", (1,), "float32", 2), LevelSet.parse("all"), 1
        self.shown, self.now = shown, 0

    def act(self, action: ndarray) -> None:
        self.now += 1

    def observe(self) -> Observation:
        value = self.shown[self.now]
        obs, first = np.array([[abs(value)]], dtype=np.float32), np.array([value < 0])
        level, never = np.array([7], dtype=np.int32), np.zeros_like(first)
        return Observation(obs, obs, first.astype(np.float32), first, level, first, never)

    def close(self) -> None: ...


def test_exploration_of_two_episodes_by_hand():
    """1, 3, 3, 4 | 9, 9, 5 |: nearest neighbours 2, 0, 1, then 0, 4; the last step of an episode earns nothing."""
    env = Corridor([-1, 3, 3, 4, -9, 9, 5, -1])
    result = explore(UniformAgent(2), env, KnnConfig(1), lambda level: np.array([4, 1]), 2)
    assert [row[1:] for row in result.episodes] == [(3.0, 2, 4), (4.0, 1, 1)]
    assert [row.share for row in result.episodes] == [0.5, 1.0]
    assert result.intrinsic_return.value == 3.5 and result.novelty.value == 1.5
    assert result.oracle_share is not None and result.oracle_share.value == 0.75
    assert result.oracle_success is not None and result.oracle_success.value == 0.5
    assert result.evaluation.episodes == [Episode(7, 1.0, 4, True), Episode(7, 1.0, 3, True, number=1)]


def test_explore_ignores_unfinished_episodes():
    env = Corridor([1, 2, -5, 6, 7, -1])
    result = explore(UniformAgent(2), env, KnnConfig(1), None, 1)
    assert [row[1:] for row in result.episodes] == [(2.0, 2, None)]


@pytest.mark.parametrize(
    ("novelty", "oracle", "share"), [(3, 4, 0.75), (4, 4, 1.0), (9, 4, 1.0), (0, 0, 1.0), (1, None, None)]
)
def test_oracle_share_is_clipped_and_1_for_zero_oracle(novelty: int, oracle: int | None, share: float | None):
    assert ExploredEpisode(Episode(0, 0.0, 1, False), 0.0, novelty, oracle).share == share


def test_exploration_intervals_resample_levels():
    rows = [
        ExploredEpisode(Episode(level, 0.0, 1, False), 2.0 * level, level, 2) for level in (0, 2) for _ in range(50)
    ]
    result = summarize_exploration(rows)
    assert result.intrinsic_return == (2.0, 0.0, 4.0) and result.novelty == (1.0, 0.0, 2.0)
    assert result.oracle_share == result.oracle_success == (0.5, 0.0, 1.0)


def test_explore_rejects_negative_episodes():
    with pytest.raises(InputError, match="--episodes is -1; accepted: 1 or more"):
        explore(UniformAgent(2), Corridor([-1]), KnnConfig(), None, -1)
