"""One try of an attack: a command in a process of its own, and what is wrong with how it ended."""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from expgen.cli.main import main

LIMIT_SECONDS = 90.0  # after which a try counts as hung
MEMORY_BYTES = 1_500_000_000  # beyond what the attacker itself needs
STATUSES = (0, 1, 2, 130)


class Ended(NamedTuple):
    """How a process of a try has ended."""

    status: int  # of its exit; less than 0: killed by that signal
    out: str
    err: str
    seconds: float
    grown_bytes: int  # memory that it took beyond what it began with
    is_hung: bool


def run_command(words: Sequence[object], folder: Path, interrupt_after: float | None = None) -> Ended:
    """`expgen WORDS…` as a fork of this process, in `folder`; after `interrupt_after` seconds it gets Ctrl-C."""
    return run_forked(lambda: main([str(word) for word in words]), folder, interrupt_after)


def run_forked(
    call: Callable[[], int],
    folder: Path,
    interrupt_after: float | None = None,
    meanwhile: Callable[[], bool] = lambda: True,
) -> Ended:
    """`call`, whose answer is the exit status, as a fork: what this process has imported need not be imported again.

    `meanwhile` is called again and again while it runs, until it answers True.
    """
    streams = [folder / f".{name}" for name in ("stdout", "stderr")]
    sys.stdout.flush()
    sys.stderr.flush()
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.chdir(folder)
            for handle, path in enumerate(streams, 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), handle)
            status = call()
        except SystemExit as end:  # argparse after --help
            status = int(end.code or 0)
        finally:  # of whatever kind: nothing of the attacker may run on in the fork
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    is_hung = is_over = False
    while True:
        pid, wait_status, usage = os.wait4(child, os.WNOHANG)
        seconds = time.monotonic() - began
        if pid:
            break
        if interrupt_after is not None and seconds > interrupt_after:
            os.kill(child, signal.SIGINT)
            interrupt_after = None
        if seconds > LIMIT_SECONDS and not is_hung:
            is_hung = True
            os.kill(child, signal.SIGKILL)
        is_over = is_over or meanwhile()
        time.sleep(0.005)
    out, err = (path.read_text(errors="replace") if path.exists() else "" for path in streams)
    for path in streams:
        path.unlink(missing_ok=True)
    grown = max(0, usage.ru_maxrss * 1024 - before)
    return Ended(os.waitstatus_to_exitcode(wait_status), out, err, seconds, grown, is_hung)


def flaw_in(ended: Ended) -> str:
    """What is wrong with how a command that met bad input or bad luck has ended; empty where nothing is."""
    lines = ended.err.splitlines()
    if ended.is_hung:
        return f"hangs: still there after {LIMIT_SECONDS:.0f} s"
    if ended.status not in STATUSES:
        return f"ends with status {ended.status}: {ended.err[-200:]}"
    if "Traceback" in ended.err:
        return f"prints a traceback: {lines[-1]}"
    if "expgen: failed: " in ended.err:
        return f"gives an obscure error: {lines[-1]}"
    if ended.status == 2 and not (lines and lines[-1].startswith("expgen: ")):
        return f"refuses without a line that says why: {ended.err[-200:]!r}"
    if any(not (letter.isprintable() or letter in "\n\r\t") for letter in ended.out + ended.err):
        return "prints control characters"
    if ended.grown_bytes > MEMORY_BYTES:
        return f"takes {ended.grown_bytes / 1e9:.1f} GB of memory"
    return ""
