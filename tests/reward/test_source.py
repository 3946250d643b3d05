"""GameReward, raw and scaled."""

import numpy as np
import torch

from expgen.envs.vec_env import EnvSpec
from expgen.reward.scale import ReturnScaler
from expgen.reward.source import GameReward, GameRewardConfig, subtract_deaths
from expgen.rollout.rollout import Rollout


def make_rollout(seed: int = 0) -> Rollout:
    rollout = Rollout(EnvSpec("toy", (2,), "float32", 3), 20, 4, 0, torch.device("cpu"))
    rng = np.random.default_rng(seed)
    rollout.host_reward.copy_(torch.from_numpy(rng.normal(size=(20, 4))))
    rollout.host_first.copy_(torch.from_numpy(rng.random((21, 4)) < 0.2))
    rollout.finish()
    return rollout


def test_game_reward_without_normalisation_is_raw():
    rollout, source = make_rollout(), GameReward(GameRewardConfig(normalize_reward=False), 4)
    assert torch.equal(source(rollout), rollout.game_reward) and rollout.game_reward.any()
    assert source.state() == {}


def test_game_reward_resets_returns_at_episode_ends():
    source, scaler = GameReward(GameRewardConfig(), 4), ReturnScaler(4)
    for seed in range(2):
        rollout = make_rollout(seed)
        raw = rollout.game_reward.clone()
        expected = scaler(rollout.host_reward.numpy(), rollout.host_first.numpy()[1:])
        np.testing.assert_array_equal(source(rollout).numpy(), expected)
        assert torch.equal(rollout.game_reward, raw)  # unchanged, for the episode log


def test_game_reward_scaled_once_per_rollout():
    source, scaler = GameReward(GameRewardConfig(normalize_with="rollout"), 4), ReturnScaler(4, per_rollout=True)
    rollout = make_rollout()
    expected = scaler(rollout.host_reward.numpy(), rollout.host_first.numpy()[1:])
    np.testing.assert_array_equal(source(rollout).numpy(), expected)
    assert not np.array_equal(expected, GameReward(GameRewardConfig(), 4)(rollout).numpy())


def test_games_that_start_anew_do_not_continue_the_saved_returns():
    """A resumed run that could not restore its games: every game opens an episode in slot 0."""
    source, restarted = GameReward(GameRewardConfig(), 4), GameReward(GameRewardConfig(), 4)
    source(make_rollout())
    state = source.state()
    assert state["running_return"].all()
    restarted.load_state(state)
    source.load_state({**state, "running_return": np.zeros(4)})
    rollout = make_rollout(1)
    rollout.host_first[0] = True
    assert torch.equal(restarted(rollout), source(rollout))


def test_reward_scaling_state_round_trip():
    source, other = GameReward(GameRewardConfig(), 4), GameReward(GameRewardConfig(), 4)
    source(make_rollout())
    other.load_state(source.state())
    assert torch.equal(source(make_rollout(1)), other(make_rollout(1)))


def test_deaths_cost_and_other_ends_do_not():
    reward = torch.tensor([[1.0, 0.0], [10.0, 2.0], [0.0, 0.0]])
    first = torch.tensor([[1, 1], [0, 1], [1, 0], [1, 0]]).bool()  # slot 0 opens the rollout and ends nothing in it
    survived = torch.tensor([[0, 0], [0, 0], [1, 0], [0, 0]]).bool()
    expected = torch.tensor([[1.0, -5.0], [10.0, 2.0], [-5.0, 0.0]])  # death in env 1; success, then death in env 0
    assert torch.equal(subtract_deaths(reward, first, survived, 5.0), expected)
    assert torch.equal(reward[1], torch.tensor([10.0, 2.0])) and subtract_deaths(reward, first, survived, 0.0) is reward


def test_death_cost_is_scaled_like_the_reward_and_not_logged():
    source, scaler, rollout = GameReward(GameRewardConfig(death_cost=3.0), 4), ReturnScaler(4), make_rollout()
    raw = rollout.game_reward.clone()
    died = rollout.host_first.numpy()[1:]  # nobody survives in this rollout
    expected = scaler(rollout.host_reward.numpy() - np.float32(3) * died, died)
    np.testing.assert_allclose(source(rollout).numpy(), expected, rtol=1e-6)
    assert torch.equal(rollout.game_reward, raw)
    without = GameReward(GameRewardConfig(normalize_reward=False, death_cost=3.0), 4)(rollout)
    torch.testing.assert_close(without, raw - 3 * torch.from_numpy(died))
