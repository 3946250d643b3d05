"""expgen agents: scores and training of every bundled agent."""

from collections.abc import Callable
from typing import Any

import pytest

from expgen.cli.summary import return_and_solved
from expgen.runs.shipped import bundled_agents


@pytest.fixture
def lines(command: Callable[..., Any]) -> list[str]:
    outcome = command("agents")
    assert outcome.status == 0 and outcome.err == ""
    return outcome.out.splitlines()


def test_agents_prints_one_aligned_line_per_agent(lines: list[str]) -> None:
    table = lines[: lines.index("")]
    assert [line.split()[0] for line in table] == ["agent", *bundled_agents()]
    for heading in ("unseen levels", "solved", "sha256", "method"):
        column = table[0].index(heading)
        assert all(line[column - 1] == " " and line[column] != " " for line in table[1:]), heading


@pytest.mark.parametrize("name", bundled_agents())
def test_agents_shows_the_agent_s_own_scores(name: str, lines: list[str]) -> None:
    agent = bundled_agents()[name]
    (line,) = [line for line in lines if line.startswith(f"{name} ")]
    test = agent.scores["test"]
    assert f"{test.mean_return:.2f} ({test.ci_low:.2f} to {test.ci_high:.2f})" in line
    assert f"{100 * test.solved_rate:.1f}%" in line and agent.sha256[:12] in line and line.endswith(agent.method)


def test_agents_shows_each_training_once_with_commit_and_config(lines: list[str]) -> None:
    for trained in {agent.folder.path: agent.trained for agent in bundled_agents().values()}.values():
        where = lines.index(f"  {trained['command']}")
        assert lines.count(f"  {trained['command']}") == 1
        assert all(f"{trained[fact]}" in lines[where + 1] for fact in ("commit", "config", "hardware", "minutes"))


def test_agent_without_score_shows_a_dash() -> None:
    assert return_and_solved(None) == ("-", "-")


def test_help_is_plain_text(command: Callable[..., Any]) -> None:
    assert "95 % intervals" in " ".join(command("agents", "--help").out.split())


def test_agents_rejects_unknown_arguments(refused: Callable[..., str]) -> None:
    assert "maze/ppo" in refused("agents", "maze/ppo")
