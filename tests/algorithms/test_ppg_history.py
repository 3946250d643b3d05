"""PPG's history: its columns, and the replay of observations that checkpoints do not contain."""

from typing import Any

import numpy as np
import pytest
import torch

from expgen.algorithms.ppg_history import History
from expgen.envs.make import make_env
from expgen.envs.vec_env import VecEnv
from expgen.rollout.rollout import Rollout

CPU = torch.device("cpu")
T, N = 5, 3


def play(env: VecEnv, history: History, rollouts: int, seed: int) -> None:
    """Play random rollouts and add each to the history."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(rollouts):
        history.open(env)
        rollout = Rollout(env.spec, T, N, 0, CPU)
        rollout.action.copy_(torch.randint(env.spec.num_actions, (T + 1, N), generator=generator))
        rollout.value_target.copy_(torch.randn(T, N, generator=generator))
        for t in range(T):
            rollout.record(t, env.observe())
            env.act(rollout.action[t].int().numpy())
        rollout.record(T, env.observe())
        history.add(rollout)


def maze() -> VecEnv:
    return make_env("minimaze", levels=20, num_envs=N, seed=0, max_cells=2, time_limit=7)


def test_history_columns_are_environments_of_rollouts():
    history = History(4, CPU)
    play(maze(), history, 3, seed=0)
    assert history.num_columns == 3 * N and not history.is_full
    column = torch.tensor([7, 0])
    for kept in (history.obs, history.value_target):
        assert torch.equal(history.columns(kept, column), torch.stack([kept[2, :, 1], kept[0, :, 0]]))


def test_resumed_history_replays_observations_and_restores_the_games():
    env, history = maze(), History(4, CPU)
    play(env, History(4, CPU), 1, seed=1)  # so that the history does not start at a reset
    play(env, history, 3, seed=0)
    state = history.state()
    assert all(tensor.dtype != torch.uint8 or name.startswith("start.") for name, tensor in state.items())

    other, again = maze(), History(4, CPU)
    other.restore(env.save())  # type: ignore[attr-defined]
    again.load_state(state)
    again.open(other)
    assert torch.equal(again.obs[:3], history.obs[:3]) and again.count == 3
    assert torch.equal(again.value_target[:3], history.value_target[:3])
    for games in (env, other):
        play(games, history if games is env else again, 1, seed=2)
    assert again.is_full and torch.equal(again.obs, history.obs)


def test_resumed_history_replays_levels_that_were_set():
    env, history = maze(), History(4, CPU)
    history.open(env)
    for rollout in range(3):
        batch = Rollout(env.spec, T, N, 0, CPU)
        for t in range(T + 1):
            for index in np.flatnonzero(env.observe().first).tolist():
                env.play(index, 7 * rollout + t)  # type: ignore[attr-defined]
            batch.record(t, env.observe())
            if t < T:
                env.act(batch.action[t].int().numpy())
        history.add(batch)
    assert set(history.level[:3].flatten().tolist()) == {0, 9, 18}

    other, again, earlier = maze(), History(4, CPU), History(4, CPU)
    other.restore(env.save())  # type: ignore[attr-defined]
    state = history.state()
    again.load_state(state)
    again.open(other)
    assert torch.equal(again.obs[:3], history.obs[:3])
    del state["level"]  # a checkpoint of an earlier version
    earlier.load_state(state)
    earlier.open(other)
    assert not torch.equal(earlier.obs[:3], history.obs[:3])


def test_cleared_history_starts_at_the_current_game_state():
    env, history = maze(), History(1, CPU)
    play(env, history, 1, seed=0)
    history.clear()
    assert history.state() == {}
    play(env, history, 1, seed=1)
    kept = history.obs.clone()
    again = History(1, CPU)
    again.load_state(history.state())
    again.open(env)
    assert torch.equal(again.obs, kept)


def test_resumed_history_is_cleared_when_games_cannot_be_saved():
    pytest.importorskip("gymnasium")
    env: Any = make_env("gymnasium:CartPole-v1", levels=20, num_envs=N, seed=0)
    history = History(3, CPU)
    play(env, history, 2, seed=0)
    again = History(3, CPU)
    again.load_state(history.state())
    again.open(env)
    assert again.count == 0
    env.close()
