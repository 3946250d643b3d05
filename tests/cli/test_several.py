"""Several runs in one command: GAME and --seed with commas."""

import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from expgen import plugins
from expgen.cli.train_flags import expand_runs, parse_runs
from expgen.cluster.engine import LocalEngine, Task, TaskResult
from expgen.cluster.ray_engine import RayEngine
from expgen.errors import InputError
from expgen.runs.progress import Progress
from expgen.training.loop import Watcher


def asked(game: str | None = None, seed: str | None = None, run: str | None = None) -> list[tuple[Any, Any, Any]]:
    """Return game, seed and folder of each run."""
    flags = [word for flag, value in (("--seed", seed), ("--run", run)) if value for word in (flag, value)]
    (arguments,) = parse_runs([*([game] if game else []), *flags])
    return [(one["game"], one.get("seed"), one["run"]) for one in expand_runs(arguments)]


def test_one_game_and_seed_train_one_run_in_its_folder() -> None:
    assert asked() == [(None, None, None)]
    assert asked("maze", "3", "here") == [("maze", 3, Path("here"))]
    assert asked("maze", "1k") == [("maze", 1000, None)]


def test_every_game_with_every_seed_is_one_run() -> None:
    assert asked("maze,heist", run="here") == [
        ("maze", None, Path("here/maze")),
        ("heist", None, Path("here/heist")),
    ]
    assert asked("maze", "0,7", "here") == [
        ("maze", 0, Path("here/seed0")),
        ("maze", 7, Path("here/seed7")),
    ]
    assert asked("maze,heist", "0,1", "here") == [
        ("maze", 0, Path("here/maze-seed0")),
        ("heist", 0, Path("here/heist-seed0")),
        ("maze", 1, Path("here/maze-seed1")),
        ("heist", 1, Path("here/heist-seed1")),
    ]


@pytest.mark.parametrize("words", [("maze,heist,maze", None), ("maze", "1,2,1")])
def test_repeated_game_or_seed_is_rejected(words: tuple[str, str | None]) -> None:
    with pytest.raises(InputError, match="accepted: each of them once"):
        asked(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["maze,mazes"], "GAME is 'mazes'; accepted: bigfish"),
        (["--seed", "0,x"], "--seed is '0,x'; accepted: whole numbers, as 1,2,3"),
        (["--seed", "0,"], "--seed is '0,'; accepted: whole numbers, as 1,2,3"),
        (["--seed", "0,-1"], "--seed is -1; accepted: 0 to 2147483647"),
    ],
)
def test_one_bad_name_rejects_all_runs(
    words: list[str], message: str, small: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    assert message in refused(*small.flags(tmp_path / "runs"), *words)
    assert not (tmp_path / "runs").exists()


def test_one_process_trains_runs_one_after_another(
    small: Any, equal: Callable[..., bool], command: Callable[..., Any], tmp_path: Path
) -> None:
    outcome = command(*small.flags(tmp_path / "runs", 2, seed="0,1", processes=1))
    assert outcome.status == 0 and outcome.out.count("done: ") == 2
    small.train(tmp_path / "two", 2, members=2)
    for seed in (0, 1):
        assert equal(small.weights(tmp_path / "runs" / f"seed{seed}"), small.weights(tmp_path / "two", f"member{seed}"))


def test_stop_prints_how_to_resume_started_and_waiting_runs(
    small: Any, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = tmp_path / "my runs"
    words = small.flags(runs, 2, seed="0,1", processes=1)
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "row", lambda self, learner, row: signal.raise_signal(signal.SIGTERM))
        patch.setattr(plugins, "_TRUSTED", {})  # other tests name modules
        stopped = command(*words)
    assert stopped.status == 128 + signal.SIGTERM and [run.name for run in runs.iterdir()] == ["seed0"]
    assert stopped.err.splitlines()[-2:] == [
        f"expgen: stopped; continue with: expgen train --resume --run '{runs}/seed0'",
        f"expgen: {runs}/seed1 was not started; continue with: the same command and --resume",
    ]
    again = command(*words, "--resume")
    assert again.status == 0 and again.out.count("done: ") == 2, again.err


def test_failed_cluster_job_does_not_stop_the_others(
    small: Any, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(self: RayEngine, tasks: Sequence[Task], watcher: Watcher) -> Iterator[TaskResult]:
        first, *others = tasks
        yield TaskResult(first, error=RuntimeError("no such luck"))
        yield from LocalEngine().run(others, watcher)

    monkeypatch.setattr(RayEngine, "run", run)
    outcome = command(*small.flags(tmp_path, 1, seed="0,1"), "--engine", "ray")
    assert (
        outcome.status == 1 and outcome.out.startswith(f"done: {tmp_path}/seed1 ") and "not started" not in outcome.err
    )
    assert "expgen: seed0 failed: RuntimeError: no such luck" in outcome.err.splitlines()


def test_preset_with_different_algorithms_is_rejected(refused: Callable[..., str], tmp_path: Path) -> None:
    line = refused("train", "maze,jumper", "--preset", "best", "--run", tmp_path / "runs")
    assert "--preset best has different algorithms for maze (openend) and jumper (expgen-idaac+mixed)" in line
    assert not (tmp_path / "runs").exists()
