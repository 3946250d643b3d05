"""agent.json: of a run, composed by hand from several runs, and derived for old runs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expgen
from expgen.agents.agent import PolicyAgent
from expgen.agents.consensus import ConsensusAgent
from expgen.agents.description import to_json
from expgen.envs.levels import LevelSet
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.runs.agent_files import read_agent, union
from expgen.runs.bundle import bundle
from expgen.runs.folder import RunFolder


@pytest.fixture(scope="module")
def runs(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Members, an explorer that has seen other levels, a population, and a run on another environment."""
    where = tmp_path_factory.mktemp("runs")
    small.train(where / "ppo", 1, members=3)
    small.train(where / "maxent", 1, algo="maxent", levels="10:15", seed=5)
    small.train(where / "population", 1, algo="expgen", members=2, min_agree=1, **small.explorer)
    small.train(where / "other", 1, options={"time_limit": 20})
    return where


def write_agent_json(folder: Path, members: list[str], explorer: str | None = None, **more: Any) -> Path:
    data = {"members": [{"path": path} for path in members], **more}
    if explorer:
        data["explorer"] = {"path": explorer}
    (folder / "mine.json").write_text(json.dumps(data))
    return folder / "mine.json"


MEMBERS = [f"ppo/checkpoints/member{index}" for index in range(3)]
EXPLORER = "maxent/checkpoints/member0"


def test_run_writes_agent_json_with_its_policies(runs: Path) -> None:
    agent = read_agent(runs / "population")
    assert [member.path for member in agent.members] == ["checkpoints/member0", "checkpoints/member1"]
    assert agent.consensus is not None and agent.consensus.min_agree == 1 and agent.explorers
    alone = read_agent(runs / "ppo")
    assert (len(alone.members), alone.explorers, alone.consensus) == (3, (), None)


def test_agent_json_combines_policies_of_two_runs(runs: Path, command: Callable[..., Any]) -> None:
    file = write_agent_json(runs, MEMBERS, EXPLORER, consensus={"min_agree": 2, "vote": "majority"})
    agent = read_agent(file)
    assert (agent.algo, agent.env, agent.trained()) == (
        "expgen",
        "minimaze",
        [*(f"member{i}" for i in range(3)), "explorer"],
    )
    assert agent.levels == LevelSet(tuple(range(25))) and agent.explorers[0].seed == 5
    player = expgen.load_agent(file)
    assert isinstance(player, ConsensusAgent) and (player.quorum, player.config.vote) == (2, "majority")
    explorer = expgen.load_agent(file, "explorer")
    theirs = expgen.load_agent(runs / "maxent")
    obs = np.random.default_rng(0).integers(256, size=(4, 11, 11, 3), dtype=np.uint8)
    assert isinstance(explorer, PolicyAgent)
    assert (explorer.act(obs, np.ones(4, dtype=bool)) == theirs.act(obs, np.ones(4, dtype=bool))).all()
    outcome = command("evaluate", file, "--episodes", "4")
    assert outcome.status == 0, outcome.err
    (row,) = read_scores(runs / "scores.csv")
    assert (row.algorithm, row.agent, row.settings, row.levels) == (
        "expgen",
        "expgen",
        "members=3 vote=majority",
        "all",
    )
    assert "overlap the training levels" in command("evaluate", file, "--levels", "24:3").err
    (runs / "scores.csv").unlink()


def test_composed_agent_plays_as_trained_unless_its_file_has_a_temperature(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path / "ppo", 1, temperature=0.5)
    assert read_agent(tmp_path / "ppo").temperature == 0.5
    assert read_agent(write_agent_json(tmp_path, MEMBERS[:1])).temperature == 1
    assert read_agent(write_agent_json(tmp_path, MEMBERS[:1], temperature=0.25)).temperature == 0.25


def test_run_killed_between_its_first_two_files_keeps_its_temperature(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunFolder, "write_config", killed)
        small.train(tmp_path, 1, temperature=0.5)
    assert not RunFolder(tmp_path).exists() and read_agent(tmp_path).temperature == 0.5
    small.train(tmp_path, 1, temperature=0.5, resume=True)
    assert RunFolder(tmp_path).exists() and read_agent(tmp_path).temperature == 0.5


def test_agent_json_of_members_votes_and_of_one_policy_does_not(runs: Path) -> None:
    votes = read_agent(write_agent_json(runs, MEMBERS, consensus={"fallback": "random"}))
    assert votes.consensus is not None and isinstance(expgen.load_agent(runs / "mine.json"), ConsensusAgent)
    alone = read_agent(write_agent_json(runs, MEMBERS[1:2]))
    assert (alone.algo, alone.consensus) == ("ppo", None)
    write_agent_json(runs, MEMBERS)
    with pytest.raises(InputError, match="--fallback is explorer but there is no explorer; accepted: random, none"):
        expgen.load_agent(runs / "mine.json")


def test_composed_agent_can_be_bundled(runs: Path, tmp_path: Path) -> None:
    here = shutil.copytree(runs, tmp_path / "runs")
    file = write_agent_json(here, MEMBERS, EXPLORER, consensus={"leader": 2}, algo="expgen")
    made = bundle(file, "expgen train …", "a laptop", 2, where=tmp_path / "shipped")
    shipped = read_agent(made.path)
    assert [member.path for member in shipped.members] == [f"checkpoints/member{index}" for index in range(3)]
    assert not RunFolder(made.path).exists() and str(tmp_path) not in (made.path / "agent.json").read_text()
    shutil.rmtree(here)  # the bundle needs no other files
    assert isinstance(expgen.load_agent(made.path), ConsensusAgent)
    assert {row.agent for row in read_scores(made.scores_file)} == {"member2", "explorer", "expgen"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "does not describe an agent; accepted: an agent.json"),
        ({}, "lacks 'members'; accepted: an agent.json"),
        ({"members": [{}]}, "lacks 'path'"),
        ({"members": [{"path": "../ppo/checkpoints/member0"}]}, "'../ppo/checkpoints/member0' is not safe"),
        ({"members": [{"path": "ppo/checkpoints/member7"}]}, "which .*ppo does not have; accepted: checkpoints of"),
        ({"members": [{"path": "nobody/checkpoints/member0"}]}, "accepted: RUN/checkpoints/LEARNER, where RUN is"),
        ({"members": [{"path": MEMBERS[0]}], "colour": 1}, "field 'colour' is unknown; accepted: algo, seed"),
        ({"members": [{"path": MEMBERS[0], "colour": 1}]}, "field 'colour' is unknown; accepted: path, algo"),
        ({"members": [{"path": MEMBERS[0]}], "explorer": {"path": "other/checkpoints/member0"}}, "with these options"),
    ],
)  # fmt: skip
def test_invalid_agent_json_is_refused_in_one_line(data: Any, message: str, runs: Path, refused: Any) -> None:
    (runs / "mine.json").write_text(json.dumps(data))
    line = refused("evaluate", runs / "mine.json", "--episodes", "1")
    assert f"{runs / 'mine.json'}" in line
    with pytest.raises(InputError, match=message):
        read_agent(runs / "mine.json")


def test_agent_json_in_its_run_folder_takes_missing_fields_from_the_config(
    runs: Path, refused: Callable[..., str], tmp_path: Path
) -> None:
    here = shutil.copytree(runs / "ppo", tmp_path / "ppo")
    (here / "agent.json").write_text(json.dumps({"members": [{"path": "checkpoints/member1"}]}))
    assert to_json(read_agent(here))["members"] == to_json(read_agent(runs / "ppo"))["members"][1:2]
    (here / "config.json").unlink()
    assert "accepted: RUN/checkpoints/LEARNER, where RUN is a run folder" in refused("evaluate", here)


def test_agent_json_that_refer_to_each_other_are_refused(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "agent.json").write_text(json.dumps({"members": [{"path": "inner/checkpoints/member0"}]}))
    (tmp_path / "inner" / "agent.json").write_text(json.dumps({"members": [{"path": "member0"}]}))
    assert "path is 'member0'; accepted: RUN/checkpoints/LEARNER" in refused("evaluate", tmp_path)


def test_old_run_without_agent_json_has_the_same_agent(runs: Path, tmp_path: Path) -> None:
    """Its config.json has the voting settings."""
    here = shutil.copytree(runs / "population", tmp_path / "old")
    (here / "agent.json").unlink()
    data = json.loads((here / "config.json").read_text())
    data["train"]["consensus"] = {"min_agree": 2, "leader": 1, "stretch": "table"}
    (here / "config.json").write_text(json.dumps(data))
    old, new = to_json(read_agent(here)), to_json(read_agent(runs / "population"))
    assert {name for name in new if old[name] != new[name]} == {"consensus"}
    assert (old["consensus"]["min_agree"], old["consensus"]["leader"]) == (2, 1)
    assert expgen.train(run=here, resume=True, device="cpu").is_complete
    assert to_json(read_agent(here)) == old and (here / "agent.json").exists()
    assert "consensus" not in json.loads((here / "config.json").read_text())["train"]


def test_union_of_level_sets() -> None:
    one, other = LevelSet(range(3)), LevelSet((2, 7))
    assert union([one, one]) == one and union([one, other]) == LevelSet((0, 1, 2, 7))
    assert union([one, LevelSet(None)]).seeds is None
