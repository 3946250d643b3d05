"""Worker processes: work in a Python of its own, which tells its parent what happens and never outlives it.

A worker is a fresh interpreter, not a fork: it has its own CUDA context and threads, and does not run the caller's main
script again. Ctrl-C, SIGTERM and SIGHUP are its parent's business, so it never receives them. Its standard input is a
pipe that only the parent holds: when that closes, the parent has died, and the worker ends at once.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from expgen.errors import InputError, error_line
from expgen.plugins import known_plugins, load_plugins

END_SECONDS = 10.0  # that a worker which has closed its connection may take to exit
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Work = Callable[[Connection], None]  # picklable; talks to its parent over the connection


class Done(NamedTuple):
    """The last message of a worker whose work is done."""


class Refused(NamedTuple):
    """The last message of a worker that met bad input."""

    error: InputError


class Failed(NamedTuple):
    """The last message of a worker that raised anything else."""

    line: str
    traceback: str


class Worker:
    """The parent's side of one worker process."""

    def __init__(self, work: Work, variables: Mapping[str, str] | None = None) -> None:
        """Start `work`, with `variables` added to the environment of the process."""
        self.connection, theirs = Pipe()
        program = f"from expgen.fast.processes import serve; serve({theirs.fileno()})"
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # the child inherits it
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.PIPE,
                env={**os.environ, **(variables or {}), "PYTHONPATH": path},
                pass_fds=(theirs.fileno(),),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        self.send(known_plugins())
        self.send(work)

    def send(self, message: Any) -> None:
        """Send `message`; a worker that is gone is noticed where its messages are read."""
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def receive(self) -> Any:
        """The next message; None where the process has died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def exit_reason(self) -> str:
        """`killed by SIGKILL` or `exited with status 3`, of one whose connection has closed."""
        try:
            status = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return "it no longer answers"
        return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"

    def close(self, patience: float = 0.0) -> None:
        """End the process: after `patience` seconds it is killed."""
        self.connection.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


def serve(descriptor: int) -> None:
    """What a worker process runs: receive work over the socket `descriptor`, do it, say how it ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection = Connection(descriptor)
    end: Done | Refused | Failed
    try:
        load_plugins(connection.recv())
        connection.recv()(connection)
        end = Done()
    except InputError as error:
        end = Refused(error)
    except Exception as error:
        end = Failed(error_line(error), traceback.format_exc())
    with contextlib.suppress(OSError):  # the parent has died or given us up
        connection.send(end)
    if isinstance(end, Failed):
        os._exit(1)  # what failed may hang on the way out


def _end_with_parent() -> None:
    os.read(0, 1)  # returns when the pipe closes
    os._exit(1)
