"""Interrupted and resumed runs end bit-equal to uninterrupted ones."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.evaluation.scores import read_scores
from tests.children import PATIENCE
from tests.runs.rows import by_learner, metrics


def wait_for_rows(run: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(metrics(run)) < count:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.005)


KILLER = """
import json, os, random, signal, sys, time
os.sched_setaffinity(0, {int(sys.argv[3])})  # one core, so that there are no threads, which a fork would lose
import expgen

folder, settings = sys.argv[1], json.loads(sys.argv[2])
expgen.train(run=f"{folder}/whole", **settings)
kills = lives = 0
while kills < 20:
    run = f"{folder}/killed{lives}"
    child = os.fork()
    if child == 0:
        os._exit(0 if expgen.train(run=run, resume=True, **settings).is_complete else 1)
    time.sleep(random.uniform(0, 0.4))
    os.kill(child, signal.SIGKILL)  # a zombie if it has ended
    status = os.waitpid(child, 0)[1]
    kills += os.WIFSIGNALED(status)
    assert os.WIFSIGNALED(status) or status == 0, status
    lives += not os.WIFSIGNALED(status)  # it finished: continue with another run
expgen.train(run=f"{folder}/killed{lives}", resume=True, **settings)
print(lives + 1)
"""


@pytest.mark.slow
def test_run_killed_twenty_times_ends_bit_equal(small: Any, equal: Callable[..., bool], tmp_path: Path) -> None:
    settings = {**small.settings, "steps": 30 * small.update_steps, "members": 2, "algo": "ppo-gru"}
    settings["eval_every"] = 10 * small.update_steps
    core = min(os.sched_getaffinity(0))
    program = [sys.executable, "-c", KILLER, str(tmp_path), json.dumps(settings), str(core)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert done.returncode == 0, done.stderr
    whole = tmp_path / "whole"
    for number in range(int(done.stdout)):
        killed = tmp_path / f"killed{number}"
        for learner in ("member0", "member1"):
            assert small.facts(killed, learner)["updates"] == 30
            assert equal(small.state(whole, learner), small.state(killed, learner))
        assert by_learner(killed) == by_learner(whole) and len(by_learner(whole)) == 60
        scores, expected = (sorted(map(str, read_scores(run / "scores.csv"))) for run in (killed, whole))
        assert scores == expected and len(scores) == 4


UPDATES = 60


@pytest.fixture(scope="module")
def whole(small: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    small.train(run, UPDATES, eval_every=10**9, checkpoint_seconds=3600.0)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_stopped_command_resumes_bit_equal(
    number: signal.Signals,
    small: Any,
    whole: Path,
    equal: Callable[..., bool],
    process: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    run, updates = tmp_path / "run", UPDATES
    # after SIGTERM and SIGINT there is only the checkpoint written on stopping
    changes = {"eval_every": 10**9, "checkpoint_seconds": 0.0 if number == signal.SIGKILL else 3600.0}
    command = process(*small.flags(run, updates, **changes))
    wait_for_rows(run, random.randint(2, 10), command)
    command.send_signal(number)
    out, err = command.communicate(timeout=PATIENCE)
    rows = len(metrics(run))
    assert 2 <= rows < updates
    if number == signal.SIGKILL:
        assert command.returncode == -number
        assert small.facts(run)["updates"] in (rows - 1, rows)
    else:
        assert command.returncode == 128 + number
        assert err.splitlines()[-1] == f"expgen: stopped; continue with: expgen train --resume --run {run}"
        assert small.facts(run)["updates"] == rows
    resumed = process("train", "--resume", "--run", run, "--device", "cpu")
    out, err = resumed.communicate(timeout=PATIENCE)
    assert resumed.returncode == 0 and out.startswith(f"done: {run}"), err
    assert equal(small.state(whole), small.state(run))
    assert metrics(run) == metrics(whole) and len(read_scores(run / "scores.csv")) == 2
