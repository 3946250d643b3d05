"""Task and TaskResult: pickling and results."""

import pickle
from pathlib import Path

import pytest

from expgen.cluster.engine import Task, TaskResult
from expgen.errors import InputError
from expgen.training.loop import Watcher


def double(watcher: Watcher) -> str:
    return "done"


def test_pickled_task_can_be_called() -> None:
    task = Task("a", double, after=("b",), run=Path("runs/a"))
    there = pickle.loads(pickle.dumps(task))
    assert there == task and there.call(Watcher()) == "done"


def test_pickled_task_result_keeps_its_error() -> None:
    back = pickle.loads(pickle.dumps(TaskResult(Task("a", double), error=InputError("--env is 'x'; accepted: y"))))
    with pytest.raises(InputError, match="--env is 'x'"):
        back.result()


def test_result_returns_the_value_or_raises_the_error() -> None:
    task = Task("a", double)
    assert TaskResult(task, value=7).result() == 7
    assert TaskResult(task).result() is None
    with pytest.raises(InputError):
        TaskResult(task, value=7, error=InputError("no")).result()  # the error wins over the value


def test_default_watcher_never_stops() -> None:
    watcher = Watcher()
    watcher.on_start(10, {})
    watcher.on_row("member0", {"env_steps": 1.0})
    assert watcher.should_stop() is False
