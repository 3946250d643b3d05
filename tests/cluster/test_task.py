"""Tasks as plain data: what travels to another machine, and what comes back."""

import pickle
from pathlib import Path

import pytest

from expgen.cluster.engine import Task, TaskResult
from expgen.errors import InputError
from expgen.training.loop import Watcher


def double(watcher: Watcher) -> str:
    return "done"


def test_a_task_survives_the_journey_and_can_be_called_there() -> None:
    task = Task("a", double, after=("b",), run=Path("runs/a"))
    there = pickle.loads(pickle.dumps(task))
    assert there == task and there.call(Watcher()) == "done"


def test_result_of_a_task_survives_pickling() -> None:
    back = pickle.loads(pickle.dumps(TaskResult(Task("a", double), error=InputError("--env is 'x'; accepted: y"))))
    with pytest.raises(InputError, match="--env is 'x'"):
        back.result()


def test_an_error_is_raised_and_an_answer_of_nothing_is_one() -> None:
    task = Task("a", double)
    assert TaskResult(task, answer=7).result() == 7
    assert TaskResult(task).result() is None
    with pytest.raises(InputError):
        TaskResult(task, answer=7, error=InputError("no")).result()  # never passed over, whatever was answered


def test_a_watcher_that_nobody_set_listens_and_lets_go_on() -> None:
    watcher = Watcher()
    watcher.on_start(10, {})
    watcher.on_row("member0", {"env_steps": 1.0})
    assert watcher.should_stop() is False
