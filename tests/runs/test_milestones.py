"""Milestones: kept while training goes on, through stops and resumes, and usable as the runs they would have been."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import InputError
from expgen.evaluation.scores import agent_name, read_scores
from expgen.runs.bundle import bundle
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import make_config
from expgen.runs.milestones import config_at
from expgen.runs.sitting import read_sitting


def kept(run: Path, steps: int) -> Path:
    return RunFolder(run).milestone(steps).path


def test_a_milestone_is_the_run_that_would_have_ended_there(small: Any, equal: Callable[..., bool], tmp_path: Path):
    asked = 2 * small.update_steps + 50  # in the middle of a rollout: a run of so many steps ends before it
    small.train(tmp_path / "long", 6, algo="maxent", keep_at=asked)
    small.train(tmp_path / "short", steps=asked, algo="maxent")
    there = kept(tmp_path / "long", asked)
    assert equal(small.state(there), small.state(tmp_path / "short"))
    configs = [RunFolder(run).read_config() for run in (there, tmp_path / "short")]
    assert configs[0] == configs[1]
    assert small.facts(tmp_path / "long")["env_steps"] == 6 * small.update_steps  # and training went on
    assert len(list(RunFolder(tmp_path / "long").checkpoints_of("member0").iterdir())) == 2


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_stops_before_at_and_after_it_leave_it_the_same(
    stop_after: int, small: Any, equal: Callable[..., bool], tmp_path: Path
):
    two = 2 * small.update_steps
    small.train(tmp_path / "short", 2)
    rows: list[Any] = []
    watch = {"on_row": lambda *row: rows.append(row), "should_stop": lambda: len(rows) == stop_after}
    assert not small.train(tmp_path / "run", 4, keep_at=f"{two},{2 * two}", **watch).is_complete
    for _ in range(2):  # the config remembers what to keep; a run that is done keeps it
        assert small.train(tmp_path / "run", 4, resume=True).is_complete
        assert equal(small.state(kept(tmp_path / "run", two)), small.state(tmp_path / "short"))
        assert equal(small.state(kept(tmp_path / "run", 2 * two)), small.state(tmp_path / "run"))


def test_it_may_be_asked_of_a_run_that_is_not_past_it(small: Any, equal: Callable[..., bool], tmp_path: Path):
    two = 2 * small.update_steps
    small.train(tmp_path, 2)
    before = small.state(tmp_path)
    with pytest.raises(
        InputError, match=r"--keep-at is 128 but member0 has 256 steps already; accepted: none, or steps"
    ):
        small.train(tmp_path, 4, keep_at=small.update_steps, resume=True)
    assert not (tmp_path / "milestones").exists() and equal(small.state(tmp_path), before)
    assert read_sitting(RunFolder(tmp_path))["state"] == "done"  # the run is none the worse for what was asked of it
    small.train(tmp_path, 4, keep_at=two, resume=True)
    assert equal(small.state(kept(tmp_path, two)), before)


def test_a_population_is_kept_whole_though_members_end_before_the_explorer(
    small: Any, equal: Callable[..., bool], command: Callable[..., Any], tmp_path: Path
):
    run, at = tmp_path / "run", 2 * small.update_steps
    settings = {
        "algo": "expgen",
        "members": 2,
        **small.explorer,
        "explorer_steps": 3 * small.update_steps,
        "keep_at": at,
    }
    small.train(run, 1, **settings)
    there = kept(run, at)
    assert {name: small.facts(there, name)["env_steps"] for name in RunFolder(there).learners()} == {
        "member0": small.update_steps, "member1": small.update_steps, "explorer": at,
    }  # fmt: skip
    assert command("evaluate", there, "--episodes", "4").status == 0
    (row,) = read_scores(there / "scores.csv")
    assert (agent_name(row), row.env_steps) == ("expgen members=2", 2 * small.update_steps + at)
    shipped = bundle(there, "expgen train", "a laptop", 1, where=tmp_path / "shipped")
    assert small.facts(shipped.path, "explorer")["env_steps"] == at


def test_it_can_be_adopted(small: Any, equal: Callable[..., bool], tmp_path: Path):
    at = small.update_steps
    small.train(tmp_path / "explorer", 3, algo="maxent", keep_at=at)
    settings = {"algo": "expgen", "members": 1, **small.explorer, "explorer_steps": at}
    small.train(tmp_path / "whole", 1, adopt=[kept(tmp_path / "explorer", at)], **settings)
    mine, theirs = small.state(tmp_path / "whole", "explorer"), small.state(kept(tmp_path / "explorer", at))
    assert equal(mine, theirs)


def test_a_policy_of_other_rollouts_is_kept_at_the_first_step_after(small: Any, tmp_path: Path):
    small.train(tmp_path / "short", steps=192, rollout_steps=8)
    small.train(tmp_path / "long", 4, adopt=[tmp_path / "short"], keep_at=256)  # it stands at 192, 320, 448, 576
    assert small.facts(kept(tmp_path / "long", 256))["env_steps"] == 320
    assert small.train(tmp_path / "long", 5, resume=True).is_complete


def test_a_lost_milestone_keeps_no_run_from_being_resumed(
    small: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    at = small.update_steps
    small.train(tmp_path, 2, keep_at=f"{at},{4 * at}")
    shutil.rmtree(tmp_path / "milestones")
    lost = f"expgen: --keep-at {at} can no longer be kept: {kept(tmp_path, at)} is incomplete, and member0 is past it"
    for again in ({}, {"keep_at": f"{at},{4 * at}"}):  # by itself, or by the same command once more
        assert small.train(tmp_path, 3, resume=True, **again).is_complete
        assert capsys.readouterr().err.splitlines() == [lost]
    assert small.train(tmp_path, 5, resume=True).is_complete
    assert small.facts(kept(tmp_path, 4 * at))["env_steps"] == 4 * at and not kept(tmp_path, at).exists()


def test_a_milestone_that_was_trained_on_is_still_one(small: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    at = small.update_steps
    small.train(tmp_path, 2, keep_at=at)
    rows: list[Any] = []
    watch = {"on_row": lambda *row: rows.append(row), "should_stop": lambda: len(rows) == 3}
    assert not small.train(kept(tmp_path, at), 5, members=3, resume=True, **watch).is_complete
    config = RunFolder(kept(tmp_path, at)).read_config()
    assert small.train(tmp_path, 3, resume=True).is_complete and not capsys.readouterr().err
    assert RunFolder(kept(tmp_path, at)).read_config() == config


def test_a_complete_milestone_stays_as_it_is_though_the_run_grows(small: Any, tmp_path: Path):
    at = small.update_steps
    small.train(tmp_path, 2, members=2, keep_at=at)
    before = {path: path.read_bytes() for path in kept(tmp_path, at).rglob("*") if path.is_file()}
    small.train(tmp_path, 2, members=3, resume=True)
    assert {path: path.read_bytes() for path in kept(tmp_path, at).rglob("*") if path.is_file()} == before
    assert RunFolder(kept(tmp_path, at)).learners() == ["member0", "member1"]


def test_what_is_kept_decides_nothing_of_a_run():
    plain = make_config(algo="expgen")
    keeping = make_config(algo="expgen", keep_at=(50_000_000, 25_000_000))
    assert keeping.digest() == plain.digest() and keeping.milestones == (25_000_000, 50_000_000)
    long = make_config("procgen:maze", "expgen", keep_at=25_000_000)
    at = config_at(long, 25_000_000)
    assert long.explorer is not None and at.explorer is not None
    assert (long.explorer.steps, at.explorer.steps, at.steps) == (100_000_000, 25_000_000, long.steps)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("soon", "--keep-at is 'soon'; accepted: none, or steps, as in 25000000,50000000"),
        ("1e6", "--keep-at is '1e6'; accepted: none"),
        ("", "--keep-at is ''; accepted: none"),
        ("20000,-1", "--keep-at is '20000,-1'; accepted: none"),
        ("25000000,100", "--keep-at is 100; accepted: 16384 .one rollout. or more"),
    ],
)
def test_what_names_no_steps_is_refused(given: str, message: str):
    with pytest.raises(InputError, match=message):
        make_config("procgen:maze", keep_at=given)
