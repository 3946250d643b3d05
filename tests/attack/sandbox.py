"""One try of an attack: a command in its own process, and the check of its outcome."""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from expgen.cli.main import main

LIMIT_SECONDS = 90.0  # then a try counts as hung
MEMORY_BYTES = 1_500_000_000  # more than the attacker itself uses
STATUSES = (0, 1, 2, 130)


class Outcome(NamedTuple):
    """How the process of a try ended."""

    status: int  # exit status; negative: killed by that signal
    out: str
    err: str
    seconds: float
    grown_bytes: int  # growth of its memory
    is_hung: bool


def run_command(words: Sequence[object], folder: Path, interrupt_after: float | None = None) -> Outcome:
    """Run `expgen WORDS…` in a fork, in `folder`; after `interrupt_after` seconds it gets Ctrl-C."""
    return run_forked(lambda: main([str(word) for word in words]), folder, interrupt_after)


def run_forked(
    call: Callable[[], int],
    folder: Path,
    interrupt_after: float | None = None,
    meanwhile: Callable[[], bool] = lambda: True,
) -> Outcome:
    """Run `call`, which returns the exit status, in a fork, which needs no imports.

    `meanwhile` is called repeatedly while it runs, until it returns True.
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
        finally:  # the fork must not run the attacker's code
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
    return Outcome(os.waitstatus_to_exitcode(wait_status), out, err, seconds, grown, is_hung)


def flaw_in(outcome: Outcome) -> str:
    """Return what is wrong with the outcome of a command after bad input or a fault; empty if nothing."""
    lines = outcome.err.splitlines()
    if outcome.is_hung:
        return f"hangs: still there after {LIMIT_SECONDS:.0f} s"
    if outcome.status not in STATUSES:
        return f"ends with status {outcome.status}: {outcome.err[-200:]}"
    if "Traceback" in outcome.err:
        return f"prints a traceback: {lines[-1]}"
    if "expgen: failed: " in outcome.err:
        return f"gives an obscure error: {lines[-1]}"
    if outcome.status == 2 and not (lines and lines[-1].startswith("expgen: ")):
        return f"refuses without a line that says why: {outcome.err[-200:]!r}"
    if any(not (letter.isprintable() or letter in "\n\r\t") for letter in outcome.out + outcome.err):
        return "prints control characters"
    if outcome.grown_bytes > MEMORY_BYTES:
        return f"takes {outcome.grown_bytes / 1e9:.1f} GB of memory"
    return ""
