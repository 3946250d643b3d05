"""Learner: rewards and advantages of an iteration, its phases, and divergence."""

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
import torch

from expgen.algorithms.ppo import PPOConfig
from expgen.algorithms.recipes import build_algorithm, recipe_of
from expgen.envs.make import make_env
from expgen.networks.actor_critic import NetworkConfig
from expgen.reward.knn import KnnConfig, KnnReward
from expgen.reward.mixture import MixedReward, MixtureConfig
from expgen.reward.scale import ReturnScaler
from expgen.reward.source import GameReward, GameRewardConfig, RewardSource
from expgen.rollout.rollout import Rollout
from expgen.training.episodes import EpisodeLog
from expgen.training.lane import PlainLane
from expgen.training.learner import Diverged, Learner, Phase, Schedule, mean_metrics
from expgen.training.loop import train_learner

T, N = 32, 4
CPU = torch.device("cpu")


def make(
    memory: str = "none",
    env_steps: int = 2 * T * N,
    eval_every: int = 0,
    reward: RewardSource | None = None,
    **options: float,
) -> Learner:
    env = make_env("minimaze", levels=20, num_envs=N, seed=0, max_cells=2, time_limit=20)
    network, config = NetworkConfig(features=8, memory=memory), PPOConfig(epochs=1, minibatches=2, **options)  # type: ignore[arg-type]
    algorithm = build_algorithm(recipe_of("ppo"), env.spec, network, config, 0, CPU)
    rollout = Rollout(env.spec, T, N, algorithm.policy.state_size, CPU)
    schedule = Schedule(env_steps, eval_every, checkpoint_seconds=1e9)
    lane = PlainLane(algorithm.policy, rollout)
    return Learner(
        "m0",
        env=env,
        algorithm=algorithm,
        lane=lane,
        reward=reward or GameReward(GameRewardConfig(), N),
        rollout=rollout,
        schedule=schedule,
        seed=0,
    )


def next_row(learner: Learner) -> dict[str, float]:
    """Run one iteration of `learner` and return its row of metrics."""
    iteration = learner.iterate()
    while True:
        try:
            next(iteration)
        except StopIteration as end:
            return end.value


def no_score(learner: Learner) -> Generator[None, None, dict[str, float]]:
    yield
    return {"test_return": 1.0}


def run_learner(learner: Learner, folder: Path) -> tuple[list[dict[str, float]], list[Phase]]:
    rows: list[dict[str, float]] = []
    training = train_learner(learner, no_score, lambda name, row: rows.append(row), folder, lambda: False)
    return rows, list(training)


def test_iteration_computes_rewards_advantages_and_value_targets(tmp_path: Path):
    learner = make("gru", env_steps=T * N, gamma=0.9, gae_lambda=0.8)
    run_learner(learner, tmp_path)
    rollout, scaler = learner.rollout, ReturnScaler(N)
    assert rollout.game_reward.any() and rollout.first[1:].any()
    expected = scaler(rollout.game_reward.numpy(), rollout.first[1:].numpy())
    np.testing.assert_array_equal(rollout.reward.numpy(), expected)
    after = torch.zeros(N)
    for t in reversed(range(T)):
        continues = (~rollout.first[t + 1]).float()
        delta = rollout.reward[t] + 0.9 * rollout.value[t + 1] * continues - rollout.value[t]
        after = delta + 0.9 * 0.8 * continues * after
        torch.testing.assert_close(rollout.advantage[t], after)
        torch.testing.assert_close(rollout.value_target[t], after + rollout.value[t])
    assert torch.equal(rollout.state[0], rollout.state[T]) and rollout.state[0].any()


def test_end_value_scales_the_value_at_ends_of_episodes_but_not_at_deaths(tmp_path: Path):
    learner = make("gru", env_steps=T * N, reward=KnnReward(KnnConfig(pool=1, end_value=0.75), N), gae_lambda=0.0)
    observe, is_deadly = learner.env.observe, np.array([True, False] * (N // 2))  # time-outs there are deaths
    learner.env.observe = lambda: observe()._replace(timed_out=observe().timed_out & ~is_deadly)  # type: ignore[method-assign]
    run_learner(learner, tmp_path)
    rollout = learner.rollout
    ends, survived, solved = rollout.first[1:], rollout.host_survived[1:], rollout.host_solved[1:]
    assert solved.any() and (survived & ~solved).any() and (ends & ~survived).any()
    expected = 0.75 * survived * rollout.value[:-1] - rollout.value[:-1]
    torch.testing.assert_close(rollout.advantage[ends], expected[ends])


def test_intrinsic_return_is_a_sum_of_unscaled_intrinsic_rewards(tmp_path: Path):
    learner, log = make(reward=MixedReward(MixtureConfig(pool=1, reward_scale=0.25), N)), EpisodeLog(N)
    for _ in range(2):
        row = next_row(learner)
        assert learner.reward.intrinsic is not None
        log.add(learner.rollout, learner.reward.intrinsic.numpy())
        assert row["intrinsic_return"] == pytest.approx(log.summary()["episode_return"])


def test_learner_yields_phases_and_returns_rows_and_counts(tmp_path: Path):
    learner = make(env_steps=3 * T * N, eval_every=2 * T * N)
    rows, phases = run_learner(learner, tmp_path)
    assert [row["env_steps"] for row in rows] == [T * N, 2 * T * N, 3 * T * N]
    assert [("test_return" in row) for row in rows] == [False, True, True]  # when due, and at the end
    assert all(np.isfinite(row["loss"]) for row in rows) and rows[0]["episodes"] > 0
    one = [Phase.COLLECT] * (2 * T + 1) + [Phase.READY] + [Phase.UPDATE] * 2
    assert phases == one + one + [Phase.COLLECT] + one + [Phase.COLLECT]
    assert learner.updates == 3


def test_nan_loss_raises_diverged(tmp_path: Path):
    learner = make()
    with torch.no_grad():
        learner.algorithm.policy.value_head.bias.fill_(float("nan"))
    with pytest.raises(Diverged, match=f"m0 diverged at {T * N} steps: its loss is nan"):
        run_learner(learner, tmp_path)
    assert not list(tmp_path.iterdir())  # no checkpoint is written


def test_training_does_not_use_the_global_random_generator(tmp_path: Path):
    before = torch.get_rng_state()
    run_learner(make(), tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_mean_metrics_averages_over_minibatches():
    rows = [{"a": torch.tensor(1.0), "b": torch.tensor(2)}, {"a": torch.tensor(3.0), "b": torch.tensor(2)}]
    assert mean_metrics(rows) == {"a": 2.0, "b": 2.0}


def test_mean_metrics_averages_over_minibatches_that_have_the_metric():
    rows = [{"a": torch.tensor(1.0)}, {}, {"b": torch.tensor(2.0)}, {"a": torch.tensor(5.0)}]
    assert mean_metrics(rows) == {"a": 3.0, "b": 2.0}
