"""Worker processes: new Python interpreters that send messages to their parent and end when it dies.

A worker is not a fork: it has its own CUDA context and threads, and does not run the caller's main script again. It
blocks Ctrl-C, SIGTERM and SIGHUP, which the parent handles. Its standard input is a pipe that only the parent holds:
when the pipe closes, the parent has died, and the worker exits at once.
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

EXIT_SECONDS = 10.0  # for a worker to exit after it has closed its connection
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Work = Callable[[Connection], None]  # picklable; communicates with the parent over the connection


class Done(NamedTuple):
    """The last message of a worker whose work is done."""


class Refused(NamedTuple):
    """The last message of a worker that raised InputError."""

    error: InputError


class Failed(NamedTuple):
    """The last message of a worker that raised another exception."""

    line: str
    traceback: str


class Worker:
    """The parent's side of one worker process."""

    def __init__(self, work: Work, variables: Mapping[str, str] | None = None) -> None:
        """Start `work`, with `variables` added to the environment of the process."""
        self.connection, theirs = Pipe()
        program = f"from expgen.fast.processes import serve; serve({theirs.fileno()})"
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)  # inherited by the child
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
        """Send `message`; a dead worker is detected by `receive`."""
        with contextlib.suppress(OSError):
            self.connection.send(message)

    def receive(self) -> Any:
        """Return the next message; None if the process has died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def exit_reason(self) -> str:
        """Return how a worker whose connection closed has ended: `killed by SIGKILL` or `exited with status 3`."""
        try:
            status = self.process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "not responding"
        return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"

    def close(self, timeout: float = 0.0) -> None:
        """Wait `timeout` seconds for the process to exit, then kill it."""
        self.connection.close()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


def serve(descriptor: int) -> None:
    """Run in the worker process: receive work over the socket `descriptor`, do it, send how it ended."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
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
    with contextlib.suppress(OSError):  # the parent has died or closed the connection
        connection.send(end)
    if isinstance(end, Failed):
        os._exit(1)  # normal exit may hang after a failure


def _exit_with_parent() -> None:
    os.read(0, 1)  # returns when the pipe closes
    os._exit(1)
