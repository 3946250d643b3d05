"""Bundles: policies of a run as shipped agents, their names, cards and checksums."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from expgen.agents.policies import read_card
from expgen.errors import InputError
from expgen.evaluation.scores import read_scores
from expgen.provenance import commit
from expgen.runs.bundle import bundle
from expgen.runs.folder import RunFolder
from expgen.runs.shipped import bundled_agents, find_agent
from expgen.training.checkpoint import add_checkpoint, digest_of
from tests.policies import load_policy, load_run, newest_checkpoint


@pytest.fixture(scope="module")
def runs(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A population, and a bundle of it under `shipped`."""
    where = tmp_path_factory.mktemp("runs")
    settings = {"algo": "expgen", "members": 2, "leader": 1, **small.explorer}
    small.train(where / "population", 1, **settings)
    bundle(where / "population", "expgen train …", "a laptop", episodes=6, where=where / "shipped")
    return where


def test_bundle_of_a_population_has_leader_explorer_and_ensemble(runs: Path) -> None:
    agents = bundled_agents(runs / "shipped")
    learners = {"minimaze/ppo": "member1", "minimaze/maxent": "explorer", "minimaze/expgen": None}
    assert {name: agent.learner for name, agent in agents.items()} == learners
    for agent in agents.values():
        assert {split: row.episodes for split, row in agent.scores.items()} == {"train": 6, "test": 6}
        assert agent.scores["test"].algorithm == agent.name.partition("/")[2]
        assert (agent.trained["command"], agent.trained["hardware"]) == ("expgen train …", "a laptop")
        assert agent.trained["env_steps"] == 3 * 128


def test_named_bundle_has_only_that_name(small: Any, runs: Path, tmp_path: Path) -> None:
    small.train(tmp_path / "explorer", 1, algo="maxent")
    for run, learner in ((runs / "population", None), (tmp_path / "explorer", "member0")):
        made = bundle(run, "expgen train", "a laptop", episodes=2, where=tmp_path / "shipped", name="best")
        (agent,) = bundled_agents(tmp_path / "shipped").values()
        assert (made.path.name, agent.name, agent.learner) == ("minimaze-best", "minimaze/best", learner)
        assert set(agent.scores) == {"train", "test"}


def test_bundle_has_only_policy_weights_in_half_precision(runs: Path) -> None:
    run, found = RunFolder(runs / "population"), find_agent("minimaze/expgen", runs / "shipped")
    assert found.is_bundled and found.learner is None and found.folder.learners() == run.learners()
    for learner in run.learners():
        theirs, env_steps = load_policy(run, learner)
        ours, same_steps = load_policy(found.folder, learner)
        assert env_steps == same_steps
        for name, weight in ours.state_dict().items():
            assert weight.dtype == torch.float32 and torch.equal(weight, theirs.state_dict()[name].half().float())
        assert all(name.startswith("policy.") for name in newest_checkpoint(found.folder, learner).tensors)
    text = "".join(path.read_text() for path in found.folder.path.glob("*.*"))
    assert str(runs) not in text  # no local path
    assert load_run(found.folder).settings == {"members": 2}


def test_checksum_depends_on_the_weights_only(runs: Path, tmp_path: Path) -> None:
    for where in (tmp_path / "one", tmp_path / "other"):
        bundle(runs / "population", "expgen train", "a laptop", episodes=1, where=where)
    one, other = (bundled_agents(tmp_path / where) for where in ("one", "other"))
    assert {name: agent.sha256 for name, agent in one.items()} == {name: agent.sha256 for name, agent in other.items()}
    agent = one["minimaze/ppo"]
    assert agent.sha256 == digest_of(newest_checkpoint(agent.folder, "member1").tensors)
    assert len({agent.sha256 for agent in one.values()}) == 3


def test_changed_weights_or_card_of_a_bundle_are_refused(
    runs: Path, refused: Callable[..., str], tmp_path: Path
) -> None:
    shipped = RunFolder(shutil.copytree(runs / "shipped" / "minimaze-expgen", tmp_path / "shipped"))
    words = ("evaluate", shipped.path, "--episodes", "1", "--scores", tmp_path / "scores.csv")
    mine, theirs = shipped.checkpoints_of("member0"), shipped.checkpoints_of("member1")
    shutil.copytree(theirs, mine, dirs_exist_ok=True)  # valid weights of another policy
    line = refused(*words)
    assert line == f"expgen: the weights in {mine} do not match the checksum in {shipped.card_file}"
    file = max(mine.glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert f"{file} is damaged: its checksum does not match" in refused(*words)
    for text in ("", "[]", '{"weights": 5}', '{"trained": 5}', '{"trained": {"averaged": 5}}'):
        shutil.copytree(runs / "shipped" / "minimaze-expgen", shipped.path, dirs_exist_ok=True)
        shipped.card_file.write_text(text)
        assert f"{shipped.card_file} is damaged; accepted: a card that scripts/bundle wrote" in refused(*words)


def test_further_trained_bundle_is_not_refused(runs: Path, small: Any, tmp_path: Path) -> None:
    here = shutil.copytree(runs / "shipped" / "minimaze-expgen", tmp_path / "on")
    small.train(here, 2, algo="expgen", members=2, leader=1, **small.explorer, resume=True)
    assert load_policy(RunFolder(here), "member0")[1] == 2 * small.update_steps


def test_interrupted_bundle_keeps_the_earlier_one(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = tmp_path / "shipped"
    shutil.copytree(runs / "shipped", where)
    before = {path: path.read_bytes() for path in where.rglob("*") if path.is_file()}

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("expgen.runs.bundle.score_all", killed)
        bundle(runs / "population", "expgen train", "a laptop", 2, where=where)
    assert {path: path.read_bytes() for path in before} == before
    assert bundled_agents(where)["minimaze/ppo"].scores["test"].episodes == 6
    bundle(runs / "population", "expgen train", "a laptop", 2, where=where)
    assert bundled_agents(where)["minimaze/ppo"].scores["test"].episodes == 2
    assert [path.name for path in where.iterdir()] == ["minimaze-expgen"]


def test_card_has_commits_and_time_of_all_sessions(small: Any, tmp_path: Path) -> None:
    run, where = RunFolder(tmp_path / "run"), tmp_path / "shipped"

    def trained(**given: Any) -> dict[str, Any]:
        return read_card(bundle(run.path, "expgen train", "a laptop", 1, where=where, **given).card_file)["trained"]

    small.train(run.path, 1)
    assert not run.scores_file.exists() and trained()["commit"] == commit()  # from the checkpoints
    tensors, facts = newest_checkpoint(run, "member0")
    ((_, _, mine),) = facts["sessions"]
    earlier = [(0, 60, "a"), (1000, 120, "b")]  # three minutes in two sessions
    add_checkpoint(run.checkpoints_of("member0"), 128, tensors, {**facts, "seconds": 180, "sessions": earlier})
    assert {name: trained()[name] for name in ("commit", "minutes")} == {"commit": "a, b", "minutes": 3.0}
    small.train(run.path, 2, resume=True)
    assert trained()["commit"] == f"a, b, {mine}"
    assert small.facts(run.path)["sessions"][:2] == [list(session) for session in earlier]
    assert {name: trained(commit="c", minutes=7)[name] for name in ("commit", "minutes")} == {
        "commit": "c",
        "minutes": 7,
    }
    add_checkpoint(run.checkpoints_of("member0"), 256, tensors, {"env_steps": 256})  # without sessions
    assert trained(commit="c")["minutes"] == 0
    with pytest.raises(InputError, match="run does not record the commit that trained it; give it with --commit"):
        trained()


def test_find_agent_prefers_run_folders_and_refuses_unknown_names(runs: Path, tmp_path: Path) -> None:
    found = find_agent(runs / "population", runs / "shipped")
    assert (found.location, found.learner, found.is_bundled) == (runs / "population", None, False)
    with pytest.raises(InputError, match=r"minimaze/a3c is no run folder.*or minimaze/ppo, minimaze/maxent, minimaze"):
        find_agent("minimaze/a3c", runs / "shipped")


def test_bundle_refuses_a_name_that_is_already_shipped(small: Any, runs: Path, tmp_path: Path) -> None:
    small.train(tmp_path / "ppo", 1)
    with pytest.raises(InputError, match=r"minimaze/ppo is already bundled in .*minimaze-expgen; remove that"):
        bundle(tmp_path / "ppo", "expgen train", "a laptop", 2, where=runs / "shipped")
    small.train(tmp_path / "gru", 1, algo="ppo-gru", members=2)
    bundle(tmp_path / "gru", "expgen train", "a laptop", 2, where=tmp_path / "shipped")
    bundle(tmp_path / "gru", "expgen train", "a laptop", 3, where=tmp_path / "shipped")  # replaces the first
    (agent,) = bundled_agents(tmp_path / "shipped").values()
    assert agent.name == "minimaze/ppo-gru" and agent.scores["test"].episodes == 3
    assert agent.folder.learners() == ["member0"] and len(read_scores(agent.folder.scores_file)) == 2


def test_bundle_can_be_trained_further(runs: Path, small: Any, tmp_path: Path) -> None:
    """Training continues from the shipped weights with a new optimiser."""
    shipped = find_agent("minimaze/expgen", runs / "shipped").folder
    shutil.copytree(shipped.path, tmp_path / "on")
    small.train(tmp_path / "on", 2, resume=True, explorer_steps=2 * small.update_steps)
    for learner in shipped.learners():
        before, steps = load_policy(shipped, learner)
        after, more = load_policy(RunFolder(tmp_path / "on"), learner)
        assert (steps, more) == (small.update_steps, 2 * small.update_steps)
        distance = sum((a - b).abs().sum() for a, b in zip(after.parameters(), before.parameters(), strict=True))
        size = sum(parameter.abs().sum() for parameter in before.parameters())
        assert 0 < distance < 0.2 * size


@pytest.fixture(scope="module")
def alone(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a bundle of one policy of an algorithm, trained for one update."""
    where = tmp_path_factory.mktemp("alone")

    def make(algo: str, **changes: Any) -> Path:
        small.train(where / algo, 1, algo=algo, **changes)
        return bundle(where / algo, "expgen train", "a laptop", 1, where=where / "shipped").path

    return make


@pytest.mark.parametrize("algo", ["daac", "idaac", "ppg"])
def test_resume_refuses_bundle_without_the_value_network(
    algo: str, alone: Callable[..., Path], small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    shipped = alone(algo)
    missing = f"has no value network for member0, which {algo} needs; accepted: checkpoints written by training"
    before = {path: path.read_bytes() for path in shipped.rglob("*") if path.is_file()}
    more = str(2 * small.update_steps)
    line = refused("train", "--resume", "--run", shipped, "--steps", more, "--device", "cpu")
    assert f"--run {shipped} {missing}" in line
    assert {path: path.read_bytes() for path in shipped.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("algo", ["ppo-gru", "maxent", "mixed", "leep", "plr", "ucb-drac"])
def test_resume_trains_bundle_of_policy_weights_only(
    algo: str, alone: Callable[..., Path], small: Any, tmp_path: Path
) -> None:
    changes = {"subsets": 4} if algo == "leep" else {}
    shutil.copytree(alone(algo, **changes), tmp_path / "on")
    assert small.train(tmp_path / "on", 2, resume=True).is_complete
    assert small.facts(tmp_path / "on")["env_steps"] == 2 * small.update_steps
