"""HangLimit: a step that takes too long ends the process and reports the stack trace."""

import subprocess
import sys
from collections.abc import Generator

import pytest

from expgen.runs.hang_limit import HangLimit
from tests.children import PATIENCE


def work() -> Generator[int, None, str]:
    yield 1
    yield 2
    return "done"


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_fast_work_is_not_changed(seconds: float) -> None:
    turns = HangLimit(seconds).limit(work(), lambda line, where: pytest.fail(line))
    assert [next(turns), next(turns)] == [1, 2]
    with pytest.raises(StopIteration) as end:
        next(turns)
    assert end.value.value == "done"


def test_error_of_the_work_is_raised() -> None:
    limit = HangLimit(60.0)
    turns = limit.limit((1 // 0 for _ in range(1)), lambda line, where: None)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        next(turns)
    assert limit.step is None


HANGS = """
import time
from expgen.runs.hang_limit import HangLimit


def a_game_that_hangs():
    yield
    time.sleep(60)


for _ in HangLimit(0.5).limit(a_game_that_hangs(), lambda line, where: print(line, where, flush=True)):
    time.sleep(1)  # between two steps, which does not count
    print("goes on", flush=True)
"""


def test_hanging_step_is_reported_and_ends_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1 and done.stdout.startswith("goes on\nmade no progress for 0.5 s")
    assert "a_game_that_hangs" in done.stdout
