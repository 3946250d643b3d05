"""The temperature of explorers beside members: which policies it applies to, score rows, files and refusals."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.agents.agent import PolicyAgent
from expgen.agents.build import LoadedAgent, build_agent
from expgen.agents.description import AgentDescription, to_json, with_policy_paths
from expgen.agents.policies import load_policies
from expgen.agents.temperature import TemperedPolicy
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.runs.agent_files import read_agent
from expgen.runs.shipped import find_agent

FOUND = find_agent("minimaze/expgen").agent  # five members and one explorer
COLD = replace(FOUND, temperature=0.25, explorer_temperature=1.0)


def temperature_in(policy: Any) -> float:
    return policy.temperature if isinstance(policy, TemperedPolicy) else 1


def temperatures(loaded: LoadedAgent) -> tuple[list[float], float]:
    """Return the temperatures of the members and of the explorer of a consensus agent."""
    agent: Any = loaded.agent
    return [temperature_in(member) for member in agent.ensemble.members], temperature_in(agent.fallback.policy)


def test_members_and_explorers_play_at_their_own_temperature() -> None:
    loaded = build_agent(COLD)
    assert temperatures(loaded) == ([0.25] * 5, 1)
    assert loaded.settings["temperature"] == "0.25" and loaded.settings["explorer_temperature"] == "1"
    turns: Any = build_agent(COLD, changes={"vote": "turns"}).agent
    assert [temperature_in(part.policy) for part in turns.agents] == [0.25] * 5 + [1]
    policies, _ = load_policies(COLD, ["explorer", "member0"], "cpu")
    assert list(map(temperature_in, policies)) == [1, 0.25]


def test_explorers_have_the_temperature_of_the_agent_by_default() -> None:
    loaded = build_agent(replace(FOUND, temperature=0.5))
    assert temperatures(loaded) == ([0.5] * 5, 0.5) and "explorer_temperature" not in loaded.settings
    same = build_agent(replace(FOUND, temperature=0.5), explorer_temperature=0.5)
    assert temperatures(same) == ([0.5] * 5, 0.5) and same.settings == loaded.settings


def test_overrides_change_one_temperature_each() -> None:
    assert temperatures(build_agent(COLD, temperature=0.5)) == ([0.5] * 5, 1)
    assert temperatures(build_agent(COLD, explorer_temperature=0.5)) == ([0.25] * 5, 0.5)
    hot = build_agent(FOUND, explorer_temperature=2)
    assert temperatures(hot) == ([1] * 5, 2) and hot.settings["explorer_temperature"] == "2"
    assert "temperature" not in hot.settings


@pytest.mark.parametrize(
    ("learner", "override", "expected"), [("explorer", None, 1), ("explorer", 0.5, 0.5), ("member1", None, 0.25)]
)
def test_temperature_of_a_policy_that_plays_alone(learner: str, override: float | None, expected: float) -> None:
    loaded = build_agent(COLD, learner, temperature=override)
    assert isinstance(loaded.agent, PolicyAgent) and temperature_in(loaded.agent.policy) == expected
    assert loaded.settings.get("temperature", "1") == f"{expected}" and "explorer_temperature" not in loaded.settings


def test_setting_is_not_in_rows_of_agents_without_explorers() -> None:
    for changes in ({"fallback": "random"}, {"vote": "mean"}):
        settings = build_agent(COLD, changes=changes).settings
        assert settings["temperature"] == "0.25" and "explorer_temperature" not in settings


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("minimaze/ppo", {}),
        ("minimaze/best", {}),  # explorers without members
        ("minimaze/expgen", {"learner": "explorer"}),
        ("minimaze/expgen", {"fallback": "random"}),
        ("minimaze/expgen", {"vote": "mean"}),
    ],
)
def test_it_is_refused_without_explorers_beside_members(name: str, settings: dict[str, Any]) -> None:
    refused = "--explorer-temperature is 0.5 but no explorer plays beside members; accepted: --temperature"
    with pytest.raises(InputError, match=refused):
        expgen.load_agent(name, explorer_temperature=0.5, **settings)


@pytest.mark.parametrize("value", [-0.1, 1e-300, 101, math.nan, True, "low"])
def test_bad_explorer_temperatures_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"--explorer-temperature is .*; accepted: 0, or 0\.001 to 100"):
        expgen.load_agent("minimaze/expgen", explorer_temperature=value)
    with pytest.raises(InputError, match=r"explorer_temperature is .*; accepted: 0, or 0\.001 to 100"):
        AgentDescription.from_json(Path(), {**to_json(FOUND), "explorer_temperature": value})


def test_agent_json_keeps_it_and_may_omit_it() -> None:
    data = to_json(COLD)
    assert data["explorer_temperature"] == 1 and AgentDescription.from_json(COLD.folder, data) == COLD
    del data["explorer_temperature"]
    assert AgentDescription.from_json(COLD.folder, data).explorer_temperature is None
    for without in ("members", "explorers"):
        with pytest.raises(InputError, match=r"explorer_temperature is 1\.0 but the agent needs both members and expl"):
            AgentDescription.from_json(COLD.folder, {**to_json(COLD), without: []})


def test_policies_copied_without_the_others_keep_their_temperature() -> None:
    for name, temperature in (("explorer", 1), ("member2", 0.25)):
        moved = with_policy_paths(COLD, Path("there"), {name: "checkpoints/x"})
        assert (moved.temperature, moved.explorer_temperature) == (temperature, None)
    both = with_policy_paths(COLD, Path("there"), {"member2": "checkpoints/x", "explorer": "checkpoints/y"})
    assert (both.temperature, both.explorer_temperature) == (0.25, 1)


def test_run_writes_scores_and_keeps_it(small: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = {"algo": "expgen", "members": 2, "eval_every": small.update_steps, **small.explorer}
    small.train(run, 1, **settings, temperature=0.5, explorer_temperature=2)
    rows = {(row.agent, row.settings) for row in read_scores(run / "scores.csv")}
    assert rows == {
        ("member0", "temperature=0.5"),
        ("member1", "temperature=0.5"),
        ("explorer", "temperature=2"),
        ("expgen", "temperature=0.5 explorer_temperature=2 members=2"),
        ("expgen", "temperature=0.5 fallback=random members=2"),
    }
    small.train(run, 2, **settings, resume=True)
    assert (read_agent(run).temperature, read_agent(run).explorer_temperature) == (0.5, 2)
    played = ("evaluate", run, "--episodes", "4", "--explorer-temperature", "0", "--scores", tmp_path / "more.csv")
    assert command(*played).status == 0
    (row,) = read_scores(tmp_path / "more.csv")
    assert row.settings == "temperature=0.5 explorer_temperature=0 members=2"


def test_composed_agent_may_have_it(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path / "members", 1, temperature=0.5)
    small.train(tmp_path / "explorers", 1, algo="maxent")
    data = {
        "members": [{"path": "members/checkpoints/member0"}],
        "explorers": [{"path": "explorers/checkpoints/member0"}],
    }
    (tmp_path / "mine.json").write_text(json.dumps({**data, "temperature": 0.25, "explorer_temperature": 1}))
    agent = read_agent(tmp_path / "mine.json")
    assert (agent.temperature_of("member0"), agent.temperature_of("explorer")) == (0.25, 1)


def test_training_flag_exists_only_with_members_and_explorers(command: Callable[..., Any], tmp_path: Path) -> None:
    flags = ("--explorer-temperature", "0.5", "--run", tmp_path / "run")
    for algo in ("ppo", "openend"):
        outcome = command("train", "--algo", algo, *flags)
        assert outcome.status == 2 and "--explorer-temperature" in outcome.err
        with pytest.raises(InputError, match="explorer_temperature"):
            expgen.train("minimaze", algo, run=tmp_path / "run", explorer_temperature=0.5)
    with pytest.raises(InputError, match=r"--explorer-temperature is -1; accepted: 0, or 0\.001 to 100"):
        expgen.train("minimaze", "expgen", run=tmp_path / "run", explorer_temperature=-1)
    text = " ".join(command("train", "--algo", "expgen", "--help", "all").out.split())
    assert "--explorer-temperature X --temperature of explorers that play beside members; written to agent.json" in text
