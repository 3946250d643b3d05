"""The Director in a real environment: every episode is sent once, before anyone sees it."""

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
    """Levels 1000, 1001, … in the order they are asked for."""

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


def test_every_episode_is_sent_once_and_seen_where_it_was_sent():
    env = make_env("minimaze", 3, N, max_cells=2, time_limit=9)
    rollout, chooser = Rollout(env.spec, T, N, 0, torch.device("cpu")), Counting()
    director, actor = Director(env, chooser), RandomActor(rollout)
    episodes = N
    for _ in range(3):
        list(collect(env, actor, rollout, director))
        first, level = rollout.host_first.numpy(), rollout.host_level.numpy()
        episodes += int(first[1:].sum())
        assert chooser.count == episodes  # the observation that opens a rollout is not sent again
        assert (level >= 1000).all()
        starts = level[1:][first[1:]]
        assert len(np.unique(starts)) == len(starts)
        assert ((level[1:] == level[:-1]) | first[1:]).all()  # a level lasts as long as its episode
        assert rollout.host_reward.numpy().max() == 10  # what the ended episode paid is still there
    assert chooser.asked[0] == [0, 1, 2, 3] and episodes > 50
    frame = make_env("minimaze", [1000], 1, max_cells=2, time_limit=9).observe().obs[0]
    again = make_env("minimaze", 3, N, max_cells=2, time_limit=9)
    Director(again, Counting()).direct(again.observe(), is_new=False)
    assert np.array_equal(again.observe().obs[0], frame)


def test_a_restored_director_sends_nobody_twice():
    env = make_env("minimaze", 3, N)
    director = Director(env, Counting())
    director.direct(env.observe(), is_new=False)
    other = Director(env, Counting())
    other.load_state(director.state())
    other.direct(env.observe(), is_new=False)
    assert other.chooser.count == N and other.chooser.asked == []  # type: ignore[attr-defined]


def test_games_that_were_not_restored_are_sent_anew():
    """Gymnasium cannot save games: a resumed run plays levels nobody chose until it is told."""
    director = Director(make_env("minimaze", 3, N), Counting())
    director.assigned[:] = 777
    director.direct(director.env.observe(), is_new=False)
    assert director.chooser.count == N  # type: ignore[attr-defined]


def test_an_environment_that_cannot_be_sent_is_refused():
    class Bare:
        spec, num_envs = make_env("minimaze", 3, 1).spec, 1

    with pytest.raises(InputError, match="--env is minimaze, which cannot set levels; accepted for this --algo:"):
        Director(Bare(), Counting())  # type: ignore[arg-type]
