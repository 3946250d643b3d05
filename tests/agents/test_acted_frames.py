"""EpisodeFrames by hand."""

import numpy as np
import pytest

from expgen.agents.acted_frames import EpisodeFrames


def frames(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint8)[:, None, None, None] * np.ones((4, 4, 3), dtype=np.uint8)


def test_add_reports_frames_seen_before_in_same_environment_and_episode():
    memory, both = EpisodeFrames(), np.array([0, 1])
    memory.begin_step(np.array([True, True]))
    assert memory.add(both, frames(7, 8)).tolist() == [False, False]
    memory.begin_step(np.array([False, False]))
    assert memory.add(both, frames(7, 7)).tolist() == [True, False]
    assert memory.add(np.array([1]), frames(8)).tolist() == [True]
    memory.begin_step(np.array([False, True]))  # new episode in environment 1
    assert memory.add(both, frames(7, 7)).tolist() == [True, False]


def test_frames_that_differ_in_one_pixel_are_different():
    memory, env = EpisodeFrames(), np.array([0])
    memory.begin_step(np.array([True]))
    frame = frames(7)
    assert not memory.add(env, frame)[0]
    frame[0, 3, 3, 2] += 1
    assert not memory.add(env, frame)[0]
    frame[0, 3, 3, 2] -= 1
    assert memory.add(env, frame)[0]


@pytest.mark.parametrize("num_envs", [1, 3])
def test_changed_number_of_environments_clears_all_frames(num_envs: int):
    memory = EpisodeFrames()
    memory.begin_step(np.ones(2, dtype=bool))
    memory.add(np.array([0]), frames(7))
    memory.begin_step(np.zeros(num_envs, dtype=bool))
    assert not memory.add(np.array([0]), frames(7))[0]
