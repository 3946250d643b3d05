"""EpisodeLog compared with a plain loop over steps and environments."""

import numpy as np
import pytest
import torch

from expgen.envs.vec_env import EnvSpec
from expgen.rollout.rollout import Rollout
from expgen.training.episodes import EpisodeLog

T, N = 40, 5
SPEC = EnvSpec("toy", (1,), "float32", 2)


def rollouts(count: int, chance: float = 0.1, seed: int = 0) -> list[Rollout]:
    """Return successive rollouts of the same games: each starts with the last observation of the one before."""
    rng = np.random.default_rng(seed)
    made, first, solved = [], np.ones(N, dtype=bool), np.zeros(N, dtype=bool)
    for _ in range(count):
        rollout = Rollout(SPEC, T, N, 0, torch.device("cpu"))
        rollout.host_reward.copy_(torch.from_numpy(rng.normal(size=(T, N))))
        firsts = np.concatenate([first[None], rng.random((T, N)) < chance])
        solveds = np.concatenate([solved[None], firsts[1:] & (rng.random((T, N)) < 0.5)])
        rollout.host_first.copy_(torch.from_numpy(firsts))
        rollout.host_solved.copy_(torch.from_numpy(solveds))
        first, solved = firsts[-1], solveds[-1]
        made.append(rollout)
    return made


def plain_loop(made: list[Rollout]) -> list[tuple[float, int, bool]]:
    total, length, finished = [0.0] * N, [0] * N, []
    for rollout in made:
        for t in range(T):
            for env in range(N):
                total[env] += float(rollout.host_reward[t, env])
                length[env] += 1
                if rollout.host_first[t + 1, env]:
                    finished.append((total[env], length[env], bool(rollout.host_solved[t + 1, env])))
                    total[env], length[env] = 0.0, 0
    return finished


@pytest.mark.parametrize("chance", [0.02, 0.1, 0.6])
def test_window_holds_the_last_hundred_episodes_after_every_rollout(chance: float):
    log, made = EpisodeLog(N), rollouts(6, chance)
    for number, rollout in enumerate(made, 1):
        log.add(rollout)
        expected = plain_loop(made[:number])
        np.testing.assert_allclose(log.recent, np.array(expected[-100:]).reshape(-1, 3), atol=1e-9)
        assert log.count == len(expected)
        mean = np.mean(expected[-100:], axis=0)
        summary = log.summary()
        assert [*summary] == ["episode_return", "episode_length", "episode_solved", "episodes"]
        np.testing.assert_allclose([*summary.values()], [*mean, len(expected)], atol=1e-9)
    assert chance < 0.1 or log.count > 100


def test_summary_is_empty_before_an_episode_ends():
    log = EpisodeLog(N)
    assert log.summary() == {}
    log.add(rollouts(1, chance=0.0)[0])  # episodes start but none ends
    assert log.summary() == {} and log.count == 0
    assert log.running[1].tolist() == [T] * N


def test_loaded_log_continues_like_the_saved_one():
    log, other, made = EpisodeLog(N), EpisodeLog(N), rollouts(2)
    log.add(made[0])
    other.load_state({name: array.copy() for name, array in log.state().items()})
    for each in (log, other):
        each.add(made[1])
    assert log.summary() == other.summary() and np.array_equal(log.running, other.running)


def test_games_that_start_anew_do_not_continue_the_saved_episodes():
    """A resumed run that could not restore its games: every game opens an episode in slot 0."""
    log, fresh, made = EpisodeLog(N), EpisodeLog(N), rollouts(2)
    log.add(made[0])
    assert log.running.any()
    made[1].host_first[0] = True
    for each in (log, fresh):
        each.add(made[1])
    assert np.array_equal(log.running, fresh.running)
    np.testing.assert_allclose(log.recent[-fresh.count :], fresh.recent)
