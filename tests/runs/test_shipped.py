"""Shipped agents: weights, scores and cards; loading by name."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expgen
from expgen.agents.build import build_agent
from expgen.agents.policies import read_card
from expgen.evaluation.scores import read_scores, settings_text, variant_settings
from expgen.runs.agent_files import read_agent
from expgen.runs.shipped import PRETRAINED, bundled_agents, find_agent
from expgen.training.checkpoint import digest_of
from expgen.watch.demo import demo_results
from tests.policies import newest_checkpoint

MINIMAZE = ("minimaze/ppo", "minimaze/maxent", "minimaze/expgen")
MAX_BYTES = 20 * 2**20  # of one game


@pytest.mark.parametrize("name", bundled_agents())
def test_shipped_weights_match_their_card(name: str) -> None:
    agent = bundled_agents()[name]
    described = read_agent(agent.folder.path)
    learners = [
        Path(described.policies[name].path).name for name in described.policies if agent.learner in (None, name)
    ]
    digests = {learner: digest_of(newest_checkpoint(agent.folder, learner).tensors) for learner in learners}
    assert digests.items() <= read_card(agent.folder.card_file)["weights"].items()
    together = hashlib.sha256("".join(digests.values()).encode()).hexdigest()
    assert agent.sha256 == (digests[agent.learner] if agent.learner else together)
    assert {"train", "test"} == agent.scores.keys() and agent.trained["command"].startswith("expgen train")
    assert sum(path.stat().st_size for path in agent.folder.path.rglob("*") if path.is_file()) < MAX_BYTES


@pytest.mark.parametrize("name", sorted(bundled_agents()))
def test_scores_of_a_shipped_agent_are_of_its_own_settings(name: str) -> None:
    agent = bundled_agents()[name]
    settings = settings_text(build_agent(read_agent(agent.folder.path), agent.learner).settings)
    for row in agent.scores.values():
        assert sorted(variant_settings(row.settings).split()) == sorted(variant_settings(settings).split())
        assert row.episodes >= 300 and not row.commit.endswith("+")


@pytest.mark.parametrize("name", MINIMAZE)
def test_shipped_agent_reproduces_the_scores_of_its_card(name: str) -> None:
    agent, card = expgen.load_agent(name), bundled_agents()[name].scores["test"]
    scores = expgen.evaluate(agent, expgen.make_env("minimaze", levels=range(5000, 5200)), episodes=200)
    assert abs(scores.mean_return - card.mean_return) < 4 * card.std_return / 200**0.5


def test_evaluate_finds_shipped_agent_by_name_and_does_not_write_to_it(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in PRETRAINED.rglob("*"))
    words = ("evaluate", "minimaze/ppo", "--episodes", "6")
    outcome = command(*words)
    assert outcome.status == 0 and outcome.out.splitlines()[1].split()[:2] == ["member0", "test"]
    assert sorted((path, path.stat().st_mtime_ns) for path in PRETRAINED.rglob("*")) == before
    assert command(*words, "--scores", tmp_path / "scores.csv").status == 0
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 2
    flags = command("evaluate", "minimaze/expgen", "--episodes", "6", "--min-agree", "3")
    assert "3 of 5 agreed" in flags.out


def test_evaluate_does_not_write_to_the_folder_of_a_shipped_agent(command: Callable[..., Any], tmp_path: Path) -> None:
    folder = bundled_agents()["minimaze/ppo"].folder.path
    before = (folder / "scores.csv").read_bytes()
    (tmp_path / "link").symlink_to(folder)
    for run in (folder, tmp_path / "link"):
        assert command("evaluate", run, "--learner", "member0", "--episodes", "2").status == 0
        assert (folder / "scores.csv").read_bytes() == before
    shutil.copytree(folder, tmp_path / "copy")
    assert command("evaluate", tmp_path / "copy", "--learner", "member0", "--episodes", "2").status == 0
    assert len(read_scores(tmp_path / "copy" / "scores.csv")) == len(read_scores(folder / "scores.csv")) + 1
    assert find_agent(bundled_agents()["minimaze/best"].folder.agent_file).is_bundled


def test_expgen_agents_lists_shipped_agents(command: Callable[..., Any]) -> None:
    outcome = command("agents")
    assert outcome.status == 0
    for name in MINIMAZE:
        agent = bundled_agents()[name]
        line = next(line for line in outcome.out.splitlines() if line.startswith(f"{name} "))
        assert agent.sha256[:12] in line and f"{agent.scores['test'].mean_return:.2f}" in line
    assert "expgen train --algo expgen --preset laptop" in outcome.out and "CPU with 2 cores" in outcome.out


def test_demo_agents_rank_as_in_the_docs() -> None:
    solved = {result.title: result.evaluation.solved_rate for result in demo_results("minimaze", 120)}
    paper = ["random actions", "one PPO policy", "ensemble + random actions", "the explorer", "ExpGen"]
    assert list(solved) == [*paper, "our explorers alone"]
    assert solved["ExpGen"] > solved["one PPO policy"] + 0.1
    assert solved["our explorers alone"] > solved["ExpGen"] + 0.05
