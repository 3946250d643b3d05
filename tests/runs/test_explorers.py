"""Several explorers, with an ensemble or alone: trained, resumed, scored and played in turn."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.agents.agent import TurnsAgent
from expgen.agents.build import build_agent
from expgen.agents.consensus import ConsensusConfig
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.runs.agent_files import read_agent
from expgen.runs.make_config import RunRequest, make_config, open_run
from expgen.runs.plan import plans_of


def test_openend_trains_explorers_that_act_in_turn_with_averaged_weights(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, 2, algo="openend", members=2, eval_every=10**9)
    agent = read_agent(tmp_path)
    assert agent.members == () and list(agent.policies) == ["explorer", "explorer1"]
    assert [policy.seed for policy in agent.explorers] == [0, 1] and agent.weights == "average"
    assert all(policy.reward.end_value == 1 for policy in agent.explorers)
    player = expgen.load_agent(tmp_path)
    assert isinstance(player, TurnsAgent) and player.turn == 50 and len(player.agents) == 2
    together = [row for row in read_scores(tmp_path / "scores.csv") if row.agent == "openend"]
    assert {(row.split, row.env_steps) for row in together} == {(s, 4 * small.update_steps) for s in ("train", "test")}
    settings = "explorers=2 turn=50 end_value=1"
    assert {row.settings for row in together} == {f"weights=average {settings}", settings}


def test_ensemble_with_several_explorers_resumes_bit_equal(small: Any, equal: Any, tmp_path: Path) -> None:
    changes = {"algo": "expgen", "members": 2, "explorer_count": 2, **small.explorer}
    small.train(tmp_path / "whole", 1, **changes)
    stop = iter([False, False, *[True] * 20])
    small.train(tmp_path / "cut", 1, should_stop=stop.__next__, **changes)
    assert small.train(tmp_path / "cut", 1, resume=True, **changes).is_complete
    for learner in ("member0", "member1", "explorer", "explorer1"):
        assert equal(small.state(tmp_path / "whole", learner), small.state(tmp_path / "cut", learner))
    assert not equal(small.weights(tmp_path / "whole", "explorer"), small.weights(tmp_path / "whole", "explorer1"))
    settings = build_agent(replace(read_agent(tmp_path / "whole"), consensus=ConsensusConfig(vote="majority"))).settings
    assert settings == {"members": 2, "explorers": 2, "turn": 50, "vote": "majority"}
    agent = expgen.load_agent(tmp_path / "whole", turn=3)
    assert isinstance(agent.fallback, TurnsAgent) and agent.fallback.turn == 3


def test_first_explorer_does_not_depend_on_explorer_count() -> None:
    one, three = (plans_of(make_config("minimaze", "expgen", explorer_count=count)) for count in (1, 3))
    assert three[: len(one)] == one and [plan.policy.seed for plan in three[len(one) :]] == [1, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"explorer_count": 0}, "--explorer-count is 0; accepted: 1"),
        ({"seed": 2**31 - 2, "members": 1, "explorer_count": 3}, "accepted for 3 learners: 0 to"),
    ],
)
def test_invalid_explorer_count_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_config("minimaze", "expgen", **settings)


def test_preset_best_defaults_to_openend(tmp_path: Path) -> None:
    config = open_run(RunRequest("procgen:heist", preset="best", run=tmp_path)).config
    assert (config.algo, config.members, config.steps, config.average) == ("openend", 3, 13_107_200, 0.98)
    assert open_run(RunRequest("procgen:heist", "ppo", "best", tmp_path)).config.algo == "ppo"
    assert open_run(RunRequest("procgen:heist", run=tmp_path)).config.algo == "ppo"
