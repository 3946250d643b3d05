"""expgen play: its files and bad input."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.cli import play
from expgen.watch.page import players_in


@pytest.fixture(scope="module")
def run(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "run"
    small.train(
        run, 2, algo="expgen", members=3, explorer_steps=256, explorer_rollout_steps=16, options={"time_limit": 40}
    )
    return run


@pytest.mark.parametrize("ending", ["html", "gif", "mp4"])
def test_play_writes_a_file(ending: str, run: Path, command: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "new" / f"episode.{ending}"
    outcome = command("play", run, "--level", "1001", "--out", out, "--min-agree", "2")
    assert outcome.status == 0 and outcome.err == ""
    assert outcome.out.startswith("expgen min_agree=2 on minimaze level 1001 (test): ")
    assert f"wrote {out}" in outcome.out and "(0" not in outcome.out
    start = {"html": b"<!DOCTYPE html>", "gif": b"GIF89a", "mp4": b"\0\0\0"}[ending]
    assert out.read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        ("member2", "ppo member2"),
        ("explorer", "maxent explorer"),
        ("random", "random actions"),
        ("wall-follower", "wall follower"),
    ],
)
def test_play_records_policies_random_actions_and_the_wall_follower(
    learner: str, name: str, run: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "episode.html"
    outcome = command("play", run, "--level", "7", "--learner", learner, "--out", out)
    assert outcome.out.startswith(f"{name} on minimaze level 7 (train): ")
    assert f'aria-label="Episode: {name} on minimaze level 7, a training level"' in players_in(out.read_text())[0]


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ((), "minimaze/best"),
        (("--turn", "9"), "minimaze/best turn=9"),
        (("--learner", "explorer"), "openend explorer"),
    ],
)
def test_play_shows_a_bundled_agent_by_its_name_and_the_settings_that_flags_override(
    flags: tuple[str, ...], name: str, command: Callable[..., Any], tmp_path: Path
) -> None:
    outcome = command("play", "minimaze/best", "--level", "1001", *flags, "--out", tmp_path / "episode.html")
    assert outcome.out.startswith(f"{name} on minimaze level 1001 (test): ")


def test_play_without_level_chooses_one_of_the_split(
    run: Path, command: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        assert f"({split}): " in command("play", run, "--split", split, "--seed", "3").out
    levels = sorted(int(file.stem.removeprefix("minimaze-level")) for file in tmp_path.glob("*.html"))
    assert len(levels) == 2 and levels[0] < 20 <= levels[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "film.avi"], "--out is film.avi; accepted: a file that ends in .html, .gif, .mp4"),
        (["--level", "-1"], "--level names level -1; accepted: levels in 0.."),
        (["--level", "few"], "--level is 'few'; accepted: a whole number"),
        (["--level", "3", "--split", "test"], "--split is test but --level 3 is a training level"),
        (["--level", "300", "--split", "train"], "--split is train but --level 300 is an unseen level"),
        (["--seed", "-1"], "--seed is -1; accepted: 0 to 2147483647"),
        (["--fps", "0"], "--fps is 0; accepted: 1 to 60"),
        (
            ["--learner", "member9"],
            "accepted: expgen, member0, member1, member2, explorer, random, wall-follower",
        ),
        (["--learner", "nobody"], "--learner is 'nobody'; accepted: expgen, member0, "),
        (["--learner", ""], "--learner is ''; accepted: expgen, member0, "),
        (["--learner", "random", "--device", "tpu"], "--device is 'tpu'; accepted: auto, cpu, cuda, cuda:N"),
        (
            ["--learner", "random", "--min-agree", "2"],
            "--min-agree is a setting of ensembles",
        ),
        (["--learner", "member0", "--alpha", "0.3"], "--alpha is a setting of ensembles"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    words: list[str],
    message: str,
    run: Path,
    refused: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused("play", run, *words)
    assert list(tmp_path.iterdir()) == []


def test_play_rejects_a_missing_run(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "nowhere is no run folder" in refused("play", tmp_path / "nowhere", "--level", "1")


def test_play_rejects_a_run_without_checkpoint(run: Path, refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((run / "config.json").read_bytes())
    line = refused("play", tmp_path, "--level", "1")
    assert line.endswith("has no checkpoint yet; accepted: a run that has trained")


def test_play_names_an_unwritable_file_before_it_plays(
    run: Path, refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr(play, "play_agent", None)
    for folder in (tmp_path / "file", "/proc"):
        assert "cannot write" in refused("play", run, "--level", "1", "--out", f"{folder}/page.html")
    monkeypatch.chdir("/proc/self")
    assert "cannot write minimaze.html" in refused("play", run, "--level", "1")


def test_play_rejects_level_for_an_environment_without_levels(
    small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    small.train(tmp_path / "run", 1, env="envpool:CartPole-v1", levels="all", algo="ppo")
    assert "--level is 3 but envpool:CartPole-v1 has no levels" in refused("play", tmp_path / "run", "--level", "3")
    assert "--split is test but envpool:CartPole-v1 has no levels" in refused(
        "play", tmp_path / "run", "--split", "test"
    )
