"""Choice of the level and split in `expgen play`."""

from typing import Any

import pytest

from expgen.agents.description import AgentDescription
from expgen.errors import InputError
from expgen.runs.agent_files import read_agent
from expgen.watch.play import PlayRequest, play_agent


@pytest.fixture(scope="module")
def agent(small: Any, tmp_path_factory: pytest.TempPathFactory) -> AgentDescription:
    """An agent with training levels 0 to 19 and test levels 30 and 31."""
    run = tmp_path_factory.mktemp("runs") / "run"
    small.train(run, 1, test_levels="30:2", options={"time_limit": 20})
    return read_agent(run)


@pytest.mark.parametrize(("level", "split"), [(0, "train"), (19, "train"), (20, "test"), (30, "test"), (999, "test")])
def test_play_determines_the_split_of_a_level(level: int, split: Any, agent: AgentDescription) -> None:
    for asked in (None, split):  # an explicit split gives the same result
        recording = play_agent(agent, PlayRequest(level, asked, learner="random"))
        assert (recording.level, recording.split) == (level, split)
    other = {"train": "test", "test": "train"}[split]
    with pytest.raises(InputError, match=f"--split is {other} but --level {level} is .*; accepted: --split {split}"):
        play_agent(agent, PlayRequest(level, other, learner="random"))  # type: ignore[arg-type]


def test_play_draws_a_level_of_the_split_from_the_seed(agent: AgentDescription) -> None:
    for split, levels in (("train", range(20)), ("test", range(30, 32)), (None, range(30, 32))):
        requests = [PlayRequest(None, split, seed=seed, learner="random") for seed in range(4)]  # type: ignore[arg-type]
        drawn = [play_agent(agent, request).level for request in requests]
        assert all(level in levels for level in drawn) and len(set(drawn)) > 1
        assert drawn == [play_agent(agent, request).level for request in requests]


def test_equal_play_requests_give_equal_episodes(agent: AgentDescription) -> None:
    one, again, other = (play_agent(agent, PlayRequest(3, seed=seed)) for seed in (1, 1, 2))
    assert [step.action for step in one.steps] == [step.action for step in again.steps]
    assert [step.action for step in one.steps] != [step.action for step in other.steps]
    assert one.agent == "ppo member0"
