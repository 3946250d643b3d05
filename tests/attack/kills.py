"""Attack: a run is killed repeatedly at random moments and must end with the weights of an undisturbed run."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import expgen
from expgen import files
from expgen.runs.folder import RunFolder
from expgen.runs.stop import SIGNALS
from expgen.training.checkpoint import latest_checkpoint
from tests.attack.sandbox import LIMIT_SECONDS, run_forked
from tests.policies import newest_checkpoint

SETTINGS: dict[str, Any] = {
    "preset": "smoke", "device": "cpu", "levels": "20", "envs": 4, "rollout_steps": 8, "minibatches": 1, "epochs": 1,
    "features": 8, "eval_every": 0, "checkpoint_seconds": 0.0, "steps": 40 * 32,
}  # fmt: skip
ENDINGS = (0, *(-number for number in (signal.SIGKILL, *SIGNALS)), *(128 + number for number in SIGNALS))


class KilledRun:
    """A run in `folder` that is resumed after each kill; a finished run is replaced by a new one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.whole = folder / "whole"
        expgen.train(run=self.whole, quiet=True, **SETTINGS)
        self.steps = 0

    @property
    def run(self) -> Path:
        return self.folder / f"killed{self.number}"

    def flaw(self, status: int, is_hung: bool) -> str:
        """Return what is wrong after a kill, or an empty text; a finished run is compared."""
        if is_hung or status not in ENDINGS:
            return "hangs" if is_hung else f"ends with status {status}"
        checkpoint = latest_checkpoint(RunFolder(self.run).checkpoints_of("member0"), is_quiet=True)
        steps = checkpoint.facts["env_steps"] if checkpoint else 0
        before, self.steps = self.steps, steps
        if steps < before:
            return f"loses steps that were checkpointed: {before} to {steps}"
        return self.finish() if steps >= SETTINGS["steps"] else ""

    def finish(self) -> str:
        """Finish the run and compare it."""
        done = run_forked(lambda: 0 if _train(self.run) else 1, self.folder)
        one, other = (newest_checkpoint(run, "member0").tensors for run in (self.whole, self.run))
        is_same = one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)
        left = list(self.run.rglob("*.part"))
        self.number, self.steps = self.number + 1, 0
        if done.status != 0:
            return f"cannot be resumed: {done.err[-200:]}"
        return "ends with other weights" if not is_same else f"leaves {left[0].name}" if left else ""


def _train(run: Path) -> bool:
    return expgen.train(run=run, resume=True, take_over=True, quiet=True, **SETTINGS).is_complete


def kill_at_any_moment(killed: KilledRun, rng: random.Random) -> str:
    """Send a signal after a random time to a forked process that has done its imports."""
    number = rng.choice([signal.SIGKILL, signal.SIGKILL, *SIGNALS])
    child = os.fork()
    if child == 0:
        status = 99
        try:
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            _train(killed.run)
            status = 0
        except KeyboardInterrupt:
            status = 130
        finally:
            os._exit(status)
    time.sleep(rng.uniform(0, 0.4))
    os.kill(child, number)
    status, is_hung = _await(child)
    return killed.flaw(status, is_hung)


def kill_while_writing(killed: KilledRun, rng: random.Random) -> str:
    """Kill in the middle of the n-th write: before fsync, before the rename, or right after it."""
    count, moment = rng.randrange(1, 12), rng.choice(["open", "fsync", "replace", "after"])
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            _die_while_writing(count, moment)
            _train(killed.run)
        finally:
            os._exit(0)
    status, is_hung = _await(child)
    return killed.flaw(status, is_hung)


def kill_while_starting(killed: KilledRun, rng: random.Random) -> str:
    """Send a signal to the real command within its first seconds."""
    command = [sys.executable, "-m", "expgen", "train", "--algo", "ppo", "--resume", "--take-over"]
    settings = {"run": killed.run, **SETTINGS}
    flags = [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    number, seconds = rng.choice([signal.SIGKILL, signal.SIGINT, *SIGNALS]), rng.uniform(0, 3)
    variables = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, *flags], env=variables, **streams) as child:
        time.sleep(seconds)
        child.send_signal(number)
        try:
            _, err = child.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGABRT)  # shows where it hangs
            _, err = child.communicate()
            return f"hangs after {number.name} at {seconds:.2f} s: {err[-1500:]}"
        status = child.returncode
    is_early = status == 1  # Python's own status, if the signal comes before our code runs
    flaw = killed.flaw(-signal.SIGINT if is_early else status, is_hung=False)
    return f"{flaw} after {number.name} at {seconds:.2f} s: {err[-300:]}" if flaw else ""


def _await(child: int) -> tuple[int, bool]:
    end = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), False
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), True


def _die_while_writing(count: int, moment: str) -> None:
    """Replace the system calls of `write_atomic`, so that the process dies in the `count`-th write."""
    writes = 0
    real_fsync, real_replace = os.fsync, os.replace

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def fsync(handle: int) -> None:
        nonlocal writes
        writes += 1
        if writes == count and moment == "open":
            os.ftruncate(handle, 5)
            die()
        real_fsync(handle)
        if writes == count and moment == "fsync":
            die()

    def replace(source: object, target: object) -> None:
        if writes == count and moment == "replace":
            die()
        real_replace(source, target)  # type: ignore[type-var]
        if writes == count and moment == "after":
            die()

    files.os.fsync, files.os.replace = fsync, replace  # type: ignore[assignment]
