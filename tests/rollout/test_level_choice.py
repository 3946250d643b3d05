"""Director: sets the level of every episode once, before it is recorded."""

import numpy as np
import pytest
import torch
from numpy import ndarray

from expgen.envs.make import make_env
from expgen.envs.vec_env import Observation
from expgen.errors import InputError
from expgen.rollout.collect import collect
from expgen.rollout.level_choice import Director
from expgen.rollout.rollout import Rollout

T, N = 40, 4


class Counting:
    """Chooses levels 1000, 1001, … in order."""

    def __init__(self) -> None:
        self.count, self.asked = 0, []

    def choose(self, env: ndarray) -> ndarray:
        self.asked.append(env.tolist())
        self.count += len(env)
        return 1000 + np.arange(self.count - len(env), self.count)

    def learn(self, rollout: Rollout) -> None: ...

    def summary(self) -> dict[str, float]:
        return {}

    def state(self) -> dict[str, ndarray]:
        return {"count": np.array([self.count])}

    def load_state(self, state: dict[str, ndarray]) -> None:
        self.count = int(state["count"][0])


class RandomActor:
    def __init__(self, rollout: Rollout) -> None:
        self.rollout, self.rng = rollout, np.random.default_rng(0)

    def start(self, t: int, observation: Observation) -> None:
        self.rollout.record(t, observation)

    def wait(self) -> ndarray:
        return self.rng.integers(5, size=N, dtype=np.int32)


def test_director_sets_each_episode_once_before_it_is_seen():
    env = make_env("minimaze", 3, N, max_cells=2, time_limit=9)
    rollout, chooser = Rollout(env.spec, T, N, 0, torch.device("cpu")), Counting()
    director, actor = Director(env, chooser), RandomActor(rollout)
    episodes = N
    for _ in range(3):
        list(collect(env, actor, rollout, director))
        first, level = rollout.host_first.numpy(), rollout.host_level.numpy()
        episodes += int(first[1:].sum())
        assert chooser.count == episodes  # the first observation of a rollout is not set again
        assert (level >= 1000).all()
        starts = level[1:][first[1:]]
        assert len(np.unique(starts)) == len(starts)
        assert ((level[1:] == level[:-1]) | first[1:]).all()  # a level changes only at an episode's start
        assert rollout.host_reward.numpy().max() == 10  # the last reward of an episode is kept
    assert chooser.asked[0] == [0, 1, 2, 3] and episodes > 50
    frame = make_env("minimaze", [1000], 1, max_cells=2, time_limit=9).observe().obs[0]
    again = make_env("minimaze", 3, N, max_cells=2, time_limit=9)
    Director(again, Counting()).direct(again.observe(), is_new=False)
    assert np.array_equal(again.observe().obs[0], frame)


def test_restored_director_sets_no_level_twice():
    env = make_env("minimaze", 3, N)
    director = Director(env, Counting())
    director.direct(env.observe(), is_new=False)
    other = Director(env, Counting())
    other.load_state(director.state())
    other.direct(env.observe(), is_new=False)
    assert other.chooser.count == N and other.chooser.asked == []  # type: ignore[attr-defined]


def test_director_sets_levels_of_games_that_were_not_restored():
    """Gymnasium cannot save games, so a resumed run plays other levels until the director sets them."""
    director = Director(make_env("minimaze", 3, N), Counting())
    director.assigned[:] = 777
    director.direct(director.env.observe(), is_new=False)
    assert director.chooser.count == N  # type: ignore[attr-defined]


def test_director_rejects_environments_without_level_control():
    class Bare:
        spec, num_envs = make_env("minimaze", 3, 1).spec, 1

    with pytest.raises(InputError, match=r"--env is minimaze, which cannot set levels as .* asks; accepted: minimaze,"):
        Director(Bare(), Counting())  # type: ignore[arg-type]
