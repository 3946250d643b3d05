"""Training in several worker processes is bit-equal to one process, even if workers die."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.evaluation.scores import read_scores
from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal
from tests.children import PATIENCE, children_of, is_running, until
from tests.runs.rows import by_learner, metrics

UPDATES = 30
LEARNERS = ("member0", "member1", "member2")


def settings(small: Any) -> dict[str, Any]:
    return {"updates": UPDATES, "members": len(LEARNERS), "eval_every": UPDATES // 2 * small.update_steps}


@pytest.fixture(scope="module")
def whole(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run trained in one process."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    small.train(run, **settings(small))
    return run


@pytest.fixture
def is_whole(whole: Path, small: Any, equal: Callable[..., bool]) -> Callable[[Path], bool]:
    """Return a function: whether a run has the same weights, rows and scores, and no pending scores."""

    def is_same(run: Path) -> bool:
        assert all(equal(small.state(run, learner), small.state(whole, learner)) for learner in LEARNERS)
        assert by_learner(run) == by_learner(whole)
        mine, theirs = (sorted(map(str, read_scores(path / "scores.csv"))) for path in (run, whole))
        assert mine == theirs and len(mine) == 2 * len(LEARNERS)
        assert not (run / "scoring").exists() and read_journal(RunFolder(run))[-1].state == "done"
        return (run / "config.json").read_bytes() == (whole / "config.json").read_bytes()

    return is_same


def test_two_processes_train_bit_equal_to_one(small: Any, is_whole: Callable[[Path], bool], tmp_path: Path) -> None:
    reported: dict[str, list[dict[str, float]]] = {learner: [] for learner in LEARNERS}
    result = small.train(
        tmp_path, **settings(small), processes=2, on_row=lambda learner, row: reported[learner].append(row)
    )
    assert result.is_complete and result.failed == () and is_whole(tmp_path)
    assert not children_of(os.getpid())
    for rows in reported.values():
        assert [row["env_steps"] for row in rows] == sorted(row["env_steps"] for row in rows)
        assert sum("test_return" in row for row in rows) == 2 and len(rows) == UPDATES + 2


def test_killed_workers_are_restarted_and_the_run_is_bit_equal(
    small: Any, is_whole: Callable[[Path], bool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = 0

    def kill_at_once(learner: str, row: dict[str, float]) -> None:
        nonlocal rows
        rows += 1
        if rows == 17:
            for child in children_of(os.getpid()):  # including the scoring worker, if it has started
                os.kill(child, signal.SIGKILL)

    assert small.train(tmp_path, **settings(small), processes=2, on_row=kill_at_once).is_complete
    assert is_whole(tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert "expgen: worker 0 died (killed by SIGKILL); restarting it" in lines


def test_worker_that_keeps_dying_fails_only_its_own_learners(
    small: Any, equal: Callable[..., bool], whole: Path, command: Callable[..., Any], tmp_path: Path
) -> None:
    def kill_second(learner: str, row: dict[str, float]) -> None:
        if learner == "member1":
            os.kill(children_of(os.getpid())[-1], signal.SIGKILL)

    changes = {"updates": UPDATES, "members": 2, "checkpoint_seconds": 3600.0}
    result = small.train(tmp_path, **changes, processes=2, on_row=kill_second)
    assert not result.is_complete and result.failed == ("member1: killed by SIGKILL",)
    assert equal(small.state(tmp_path), small.state(whole))
    assert read_journal(RunFolder(tmp_path))[-1].state == "failed"
    assert not children_of(os.getpid())


def test_diverged_learner_does_not_affect_other_processes(
    small: Any, equal: Callable[..., bool], command: Callable[..., Any], tmp_path: Path
) -> None:
    explorer = {**small.explorer, "explorer_steps": 2 * small.update_steps, "explorer_learning_rate": 1e38}
    changes = {"algo": "expgen", "members": 1, **explorer}
    outcome = command(*small.flags(tmp_path / "two", 2, **changes, processes=2))
    assert outcome.status == 1, outcome
    assert outcome.err.splitlines()[-1].startswith("expgen: explorer diverged; the last good checkpoint is in")
    small.train(tmp_path / "alone", 2)
    assert equal(small.weights(tmp_path / "alone"), small.weights(tmp_path / "two"))


def test_runs_of_several_seeds_share_processes(
    small: Any, whole: Path, equal: Callable[..., bool], command: Callable[..., Any], tmp_path: Path
) -> None:
    words = small.flags(tmp_path, UPDATES, seed="0,1", processes=2)
    outcome = command(*words)
    assert outcome.status == 0, outcome
    for seed in (0, 1):
        run = tmp_path / f"seed{seed}"
        assert f"done: {run} " in outcome.out and len(metrics(run)) == UPDATES
        assert equal(small.weights(run), small.weights(whole, f"member{seed}"))
    total = 2 * UPDATES * small.update_steps
    assert outcome.err.splitlines()[-1].startswith(f"{total:,}/{total:,} steps")


@pytest.mark.slow
def test_workers_exit_when_the_parent_is_killed_and_the_run_resumes(
    small: Any, is_whole: Callable[[Path], bool], process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    command = process(*small.flags(run, **settings(small), processes=2))
    until(lambda: len(metrics(run)) >= 5)
    workers = children_of(command.pid)
    assert len(workers) >= 2
    command.kill()
    until(lambda: not any(map(is_running, workers)))
    assert len(metrics(run)) < UPDATES * len(LEARNERS)
    assert small.train(run, **settings(small), processes=2, resume=True).is_complete and is_whole(run)


@pytest.mark.slow
def test_ctrl_c_to_all_processes_writes_a_checkpoint_that_resumes_in_one_process(
    small: Any, is_whole: Callable[[Path], bool], process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    changes = {**settings(small), "checkpoint_seconds": 3600.0}  # only the checkpoint written on stopping
    command = process(*small.flags(run, **changes, processes=2), start_new_session=True)
    until(lambda: len(metrics(run)) >= 5)
    workers = children_of(command.pid)
    os.killpg(command.pid, signal.SIGINT)  # as a terminal does
    _, err = command.communicate(timeout=PATIENCE)
    assert command.returncode == 128 + signal.SIGINT and not any(map(is_running, workers)), err
    assert err.splitlines()[-1] == f"expgen: stopped; continue with: expgen train --resume --run {run}"
    rows = metrics(run)
    for learner in LEARNERS:
        assert small.facts(run, learner)["updates"] == sum(row["learner"] == learner for row in rows)
    config = (run / "config.json").read_text().replace("3600.0", "0.0")
    (run / "config.json").write_text(config)
    assert small.train(run, **settings(small), resume=True).is_complete and is_whole(run)
