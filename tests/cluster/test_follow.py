"""RunFollower: totals, new rows, and incomplete folders."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from expgen.cluster.engine import Task
from expgen.cluster.follow import RunFollower
from expgen.runs.folder import RunFolder
from expgen.training.loop import Watcher
from expgen.training.metrics import MetricsFile


class Heard:
    """A watcher that records its calls."""

    def __init__(self) -> None:
        self.starts: list[tuple[int, dict[str, int]]] = []
        self.rows: list[tuple[str, int]] = []
        self.follower = RunFollower(
            Watcher(
                on_start=lambda total, done: self.starts.append((total, done)),
                on_row=lambda learner, row: self.rows.append((learner, int(row["env_steps"]))),
            )
        )


@pytest.fixture(scope="module")
def trained(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "run"
    small.train(run, updates=2, members=2)
    return run


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


def task(name: str, run: Path | None) -> Task:
    return Task(name, lambda watcher: None, run=run)


def report(run: Path, learner: str, env_steps: int) -> None:
    MetricsFile(RunFolder(run).metrics_file).append(learner, {"env_steps": env_steps, "seconds": 1.0})


def test_follower_reports_totals_and_each_new_row_once(run: Path, small: Any) -> None:
    heard, tasks, steps = Heard(), [task("a", run)], 2 * small.update_steps
    heard.follower.poll(tasks)
    assert heard.starts == [(2 * steps, {"a/member0": steps, "a/member1": steps})] and heard.rows == []
    report(run, "member1", steps + 64)
    for _ in range(2):
        heard.follower.poll(tasks)
    assert heard.rows == [("a/member1", steps + 64)] and len(heard.starts) == 1


def test_follower_accepts_a_restarted_run_with_fewer_steps(run: Path, small: Any) -> None:
    heard, tasks = Heard(), [task("a", run)]
    heard.follower.poll(tasks)
    MetricsFile(RunFolder(run).metrics_file).drop_rows_after("member0", small.update_steps)
    heard.follower.poll(tasks)
    assert heard.rows == [("a/member0", small.update_steps)]


def test_follower_updates_totals_when_runs_start_and_end(run: Path, small: Any, tmp_path: Path) -> None:
    heard, other, steps = Heard(), tmp_path / "other", 4 * small.update_steps
    both = [task("a", run), task("ab", other)]  # one name is a prefix of the other
    heard.follower.poll(both)
    shutil.copytree(run, other)
    heard.follower.poll(both)
    assert [total for total, _ in heard.starts] == [steps, 2 * steps]
    heard.follower.forget(both[0])
    heard.follower.poll(both[1:])
    total, done = heard.starts[-1]
    assert total == steps and done.keys() == {"ab/member0", "ab/member1"}


def test_follower_skips_missing_and_damaged_folders(run: Path, tmp_path: Path) -> None:
    heard, config_file = Heard(), RunFolder(run).config_file
    whole = config_file.read_text()
    config_file.write_text(whole[:50])
    tasks = [task("none", None), task("later", tmp_path / "later"), task("a", run)]
    heard.follower.poll(tasks)
    assert heard.starts == [] and heard.rows == []
    config_file.write_text(whole)
    heard.follower.poll(tasks)
    assert len(heard.starts) == 1 and {name.partition("/")[0] for name in heard.starts[0][1]} == {"a"}
