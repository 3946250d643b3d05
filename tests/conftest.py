"""Shared fixtures: small runs, the command line, processes, an S3 server."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import expgen
from expgen.cli.main import main
from expgen.reproduce.job import Job
from expgen.runs.folder import RunFolder
from tests.policies import newest_checkpoint
from tests.storage.s3_server import Faults, s3_server

# In the background or under nohup these signals are ignored, also by the commands that tests start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

if not torch.cuda.is_available():  # run our kernels in Triton's interpreter, in float32
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported


class SmallRun:
    """A run of 8 mazes and 16 steps per rollout, with a checkpoint after every update."""

    update_steps = 8 * 16
    settings: dict[str, Any] = {  # noqa: RUF012
        "preset": "smoke",
        "device": "cpu",
        "levels": "20",
        "envs": 8,
        "rollout_steps": 16,
        "minibatches": 2,
        "epochs": 1,
        "features": 16,
        "eval_every": 0,
        "eval_episodes": 4,
        "checkpoint_seconds": 0.0,
    }

    explorer: dict[str, Any] = {  # noqa: RUF012
        "explorer_steps": update_steps,
        "explorer_rollout_steps": 16,
        "explorer_minibatches": 2,
        "explorer_epochs": 1,
        "explorer_features": 16,
    }

    def job(self, name: str, updates: int = 8) -> Job:
        """Return a job of such a run, evaluated during training too."""
        settings = {key: value for key, value in self.settings.items() if key not in ("preset", "device")}
        asked = {**settings, "eval_every": 4 * self.update_steps, "steps": updates * self.update_steps}
        return Job(name, "minimaze", "ppo", "smoke", asked, episodes=4)

    def train(self, run: Path, updates: int = 4, **changes: Any) -> expgen.RunResult:
        """Train for `updates` updates; `changes` are arguments of `expgen.train`."""
        return expgen.train(run=run, **{**self.settings, "steps": updates * self.update_steps, **changes})

    def flags(self, run: Path, updates: int = 4, **changes: Any) -> list[str]:
        """Return the command line of the same run."""
        values = {**self.settings, "steps": updates * self.update_steps, "run": run, **changes}
        return ["train", *(word for name, value in values.items() for word in _flag(name, value))]

    def state(self, run: Path, learner: str = "member0") -> dict[str, Tensor]:
        """Return all tensors of the newest checkpoint: weights, optimiser, generator, games, statistics."""
        return newest_checkpoint(run, learner).tensors

    def facts(self, run: Path, learner: str = "member0") -> dict[str, Any]:
        return newest_checkpoint(run, learner).facts

    def weights(self, run: Path, learner: str = "member0") -> dict[str, Tensor]:
        """Return the policy's tensors of the newest checkpoint."""
        return {name: tensor for name, tensor in self.state(run, learner).items() if name.startswith("policy.")}

    def newest(self, run: Path, learner: str = "member0") -> Path:
        """Return the file of the newest checkpoint."""
        return max(RunFolder(run).checkpoints_of(learner).glob("*.safetensors"))


def _flag(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    return [flag] if value is True else [flag, str(value)]


@pytest.fixture(scope="session")
def s3() -> Iterator[Faults]:
    """One S3 server for all tests of a process; its address is in the environment."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    with s3_server() as faults:
        yield faults


@pytest.fixture(scope="session")
def small() -> SmallRun:
    return SmallRun()


@pytest.fixture(scope="session")
def equal() -> Callable[[dict[str, Tensor], dict[str, Tensor]], bool]:
    """Bit-equality of two dictionaries of tensors."""

    def is_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
        return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)

    return is_equal


CORES = sorted(os.sched_getaffinity(0))


@pytest.fixture(scope="session", autouse=True)
def one_core() -> Iterator[None]:
    """Use one core: on a busy machine, threads that wait for each other are very slow."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda pid: {CORES[0]})
        yield


@pytest.fixture
def process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start the command as a process on one core; it is killed after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: object, **keywords: Any) -> subprocess.Popen[str]:
        core = CORES[os.getpid() % len(CORES)]
        program = [sys.executable, "-m", "expgen.cli.main", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        pin = {"preexec_fn": lambda: os.sched_setaffinity(0, {core})}
        started.append(subprocess.Popen(program, **{**pipes, **pin, **keywords}))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Outcome(NamedTuple):
    """Exit status and output of a command."""

    status: int
    out: str
    err: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command line in this process."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as end:  # argparse after --help
            status = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run


@pytest.fixture
def refused(command: Callable[..., Outcome]) -> Callable[..., str]:
    """Run a command that must fail with status 2; return its one error line."""

    def run(*words: object) -> str:
        outcome = command(*words)
        lines = outcome.err.splitlines()
        assert outcome.status == 2 and len(lines) == 1 and lines[0].startswith("expgen: "), outcome
        return lines[0]

    return run
