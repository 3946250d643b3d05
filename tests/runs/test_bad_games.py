"""A failing game ends only its own learner: the others finish, the run reports the failure and can be resumed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.runs import supervise
from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal
from expgen.runs.make_config import make_config
from expgen.runs.plan import member_levels

pytest.importorskip("gymnasium")

ENV = "gymnasium:tests.runs.bad_games:Bad-v0"
UPDATES, MEMBERS = 3, 3
LEVELS = "8"  # few enough that the first rollout of a member plays all its levels


@pytest.fixture(scope="module")
def settings(small: Any) -> dict[str, Any]:
    """Three members, of which only the second trains on the bad level."""
    config = make_config(ENV, preset="smoke", levels=LEVELS, member_levels="bootstrap")
    levels = [set(member_levels(config, seed).seeds or ()) for seed in range(MEMBERS)]
    bad = min(levels[1] - levels[0] - levels[2])
    return {
        "env": ENV,
        "levels": LEVELS,
        "members": MEMBERS,
        "member_levels": "bootstrap",
        "options": {"bad_level": bad},
    }


def with_how(settings: dict[str, Any], how: str) -> dict[str, Any]:
    return {**settings, "options": {**settings["options"], "how": how}}


@pytest.fixture(scope="module")
def good(small: Any, settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run without failures."""
    path = tmp_path_factory.mktemp("games") / "good"
    assert small.train(path, UPDATES, **settings).is_complete
    return path


@pytest.mark.parametrize(
    ("how", "limit", "why"),  # a limit puts the learners into a worker process
    [
        ("raises", 0.0, "ZeroDivisionError: \x1b[31mno ground"),
        ("exits", 0.0, "RuntimeError: the game exited (0)"),
        ("raises", 60.0, "ZeroDivisionError: \x1b[31mno ground"),
        ("dies", 60.0, "exited with status 3"),
        ("hangs", 2.0, "made no progress for 2 s"),
    ],
    ids=["raises", "exits", "raises in a worker", "kills its worker", "hangs in a worker"],
)
def test_failing_game_ends_only_its_own_learner(
    how: str,
    limit: float,
    why: str,
    small: Any,
    settings: dict[str, Any],
    good: Path,
    equal: Callable[..., bool],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervise, "MAX_DEATHS", 1)
    result = small.train(tmp_path, UPDATES, **with_how(settings, how), hang_seconds=limit)
    assert not result.is_complete and result.failed == (f"member1: {why}",)
    assert all(equal(small.weights(good, name), small.weights(tmp_path, name)) for name in ("member0", "member2"))
    entry = read_journal(RunFolder(tmp_path))[-1]
    assert entry.state == "failed" and entry.message == f"member1: {why}"
    assert "Traceback" not in capfd.readouterr().err
    if how != "dies":  # which has no traceback
        assert "member1" in (log := (tmp_path / "failures.log").read_text()) and "bad_games.py" in log
    config = RunFolder(tmp_path).config_file
    config.write_text(config.read_text().replace(f'"{how}"', '""'))  # repair the game
    assert small.train(tmp_path, UPDATES, **with_how(settings, ""), resume=True).is_complete
    assert small.facts(tmp_path, "member1")["updates"] == UPDATES


def test_nan_reward_ends_only_its_own_learner(
    small: Any, settings: dict[str, Any], good: Path, equal: Callable[..., bool], tmp_path: Path
) -> None:
    result = small.train(tmp_path, UPDATES, **with_how(settings, "pays nan"))
    assert result.diverged == ("member1",) and not result.failed
    assert all(equal(small.weights(good, name), small.weights(tmp_path, name)) for name in ("member0", "member2"))


def test_command_prints_the_failure_and_how_to_resume(
    small: Any, settings: dict[str, Any], command: Callable[..., Any], tmp_path: Path
) -> None:
    words = {**settings, "options": None}
    options = [f"--option=bad_level={settings['options']['bad_level']}", "--option=how=raises"]
    flags = small.flags(tmp_path / "run", UPDATES, **{name: words[name] for name in words if name != "options"})
    outcome = command(*flags, *options)
    why = "member1: ZeroDivisionError: \\x1b[31mno ground"
    assert outcome.status == 1 and outcome.out == ""
    go_on = f"continue with: expgen train --resume --run {tmp_path / 'run'}"
    assert outcome.err.splitlines()[-1].startswith(f"expgen: {why}; {go_on} --import ")  # the module of the game
    status = command("status", tmp_path / "run")
    assert status.status == 1 and "failed" in status.out and why in status.out


def test_error_is_raised_if_every_learner_failed(
    small: Any, settings: dict[str, Any], command: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(ZeroDivisionError):
        small.train(tmp_path, UPDATES, **{**with_how(settings, "raises"), "members": 1, "seed": 1})
    assert read_journal(RunFolder(tmp_path))[-1].state == "failed"


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_invalid_hang_seconds_is_refused(limit: float, refused: Callable[..., str]) -> None:
    assert f"--hang-seconds is {limit}; accepted: 0 to" in refused("train", "--hang-seconds", limit)
