"""The explorer: its settings, training and resuming, and its reward against the original code's."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from expgen.envs.library import is_installed
from expgen.envs.make import make_env
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.rollout.rollout import Rollout
from expgen.runs.make_config import make_config
from tests.reward.walks import CPU

GAMES_BY_GAMMA = {  # the original code's table
    0.5: "heist chaser",
    0.9: "maze miner starpilot plunder caveflyer dodgeball ninja",
    0.99: "jumper bigfish fruitbot bossfight coinrun climber leaper",
}


def test_explorer_settings_by_game():
    gammas = {game: gamma for gamma, games in GAMES_BY_GAMMA.items() for game in games.split()}
    assert {game: make_config(f"procgen:{game}", "maxent").algorithm.gamma for game in gammas} == gammas
    assert len(gammas) == 16
    assert make_config("procgen:jumper", "maxent", gamma=0.3).algorithm.gamma == 0.3
    config = make_config("procgen:maze", "maxent")
    assert (config.algorithm.gamma, config.steps, config.network.memory) == (0.9, 100_000_000, "gru")
    assert config.reward == KnnConfig(2, "l2", "raw", 500, 3)
    config = make_config("minimaze", "maxent")
    assert config.reward == dataclasses.replace(KnnConfig(), pool=1, reward_scale=0.15)
    assert config.algorithm.gamma == 0.9
    assert make_config("gymnasium:CartPole-v1", "maxent", "laptop").algorithm.gamma == 0.9  # not the preset's


@pytest.mark.procgen
@pytest.mark.skipif(not is_installed(), reason="no ProcGen library")
def test_intrinsic_return_of_a_random_maze_agent_matches_the_reference():
    """4.1 for k = 1 and 8.0 for k = 2, mean of an episode on each of the levels 0 to 199; here on every fourth."""
    num_envs, num_steps = 50, 125
    env: Any = make_env("procgen:maze", 200, num_envs, 0, 2, full_view=True)
    for index in range(num_envs):
        env.play(index, 4 * index)
    rng = np.random.default_rng(0)
    sources = [KnnReward(KnnConfig(rank), num_envs) for rank in (1, 2)]
    total, goes_on = np.zeros((2, num_envs)), np.ones(num_envs, dtype=bool)
    rollout = Rollout(env.spec, num_steps, num_envs, 0, CPU)
    for _ in range(4):  # the time limit is 500 steps
        rollout.record(0, env.observe())
        for t in range(num_steps):
            env.act(rng.integers(15, size=num_envs, dtype=np.int32))
            rollout.record(t + 1, env.observe())
        rollout.finish()
        ended = np.cumsum(rollout.host_first.numpy()[1:], axis=0) > 0  # [T, N]
        for sums, source in zip(total, sources):
            sums += (source(rollout).numpy() * ~ended * goes_on).sum(0)
        goes_on &= ~ended[-1]
    env.close()
    assert not goes_on.any()
    print("intrinsic return", total.mean(1), "standard error", total.std(1) / num_envs**0.5)
    assert total[0].mean() == pytest.approx(4.1, abs=0.8)
    assert total[1].mean() == pytest.approx(8.0, abs=1.5)


def test_explorer_resumes_bit_equal_and_reports_intrinsic_return(
    small: Any, equal: Callable[..., bool], tmp_path: Path, one_core: None
):
    """Runs are stopped after every rollout, in the middle of episodes of up to 192 steps."""
    game = {"algo": "maxent", "options": {"time_limit": 40}}
    small.train(tmp_path / "whole", 5, **game)
    for updates in (1, 2, 5):
        small.train(tmp_path / "parts", updates, **game, resume=True)
    assert equal(small.state(tmp_path / "whole"), small.state(tmp_path / "parts"))
    assert small.state(tmp_path / "whole")["reward.age"].any()
    header, *rows = (tmp_path / "whole" / "metrics.csv").read_text().splitlines()
    last = dict(zip(header.split(","), rows[-1].split(",")))
    assert float(last["intrinsic_return"]) > 0 and "episode_return" in last
