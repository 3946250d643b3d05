"""Worker processes: messages, exit reasons, and exit with the parent."""

import os
import signal
import subprocess
import sys
from functools import partial
from multiprocessing.connection import Connection

import pytest

from expgen.errors import FailedStorage, InputError
from expgen.fast.processes import Done, Failed, Refused, Worker
from tests.children import is_running, until


def echo(parent: Connection) -> None:
    parent.send((os.environ["GREETING"], os.getpid()))
    while (message := parent.recv()) is not None:
        parent.send(message)


def refuse(error: InputError, parent: Connection) -> None:
    raise error


def fail(parent: Connection) -> None:
    raise ZeroDivisionError("nothing\nleft")


def lose_a_connection(parent: Connection) -> None:
    raise ConnectionResetError("a game's server is gone")


def signal_myself(parent: Connection) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(os.getpid(), number)
    parent.send("still here")


def test_worker_sends_messages_and_exits_when_its_work_is_done() -> None:
    worker = Worker(echo, {"GREETING": "hello"})
    assert worker.receive() == ("hello", worker.process.pid)
    worker.send([1, 2])
    assert worker.receive() == [1, 2]
    worker.send(None)
    assert worker.receive() == Done() and worker.receive() is None
    worker.close(10.0)
    assert worker.process.returncode == 0


def test_killed_worker_reports_its_signal() -> None:
    worker = Worker(echo, {"GREETING": "hello"})
    worker.receive()
    worker.process.kill()
    assert worker.receive() is None and worker.exit_reason() == "killed by SIGKILL"
    worker.send("to nobody")
    worker.close()


@pytest.mark.parametrize("error", [InputError("--gamma is 2; accepted: 0 to 1"), FailedStorage("disk full")])
def test_input_error_in_a_worker_reaches_the_parent_unchanged(error: InputError) -> None:
    worker = Worker(partial(refuse, error))
    message = worker.receive()
    worker.close(10.0)
    assert isinstance(message, Refused) and type(message.error) is type(error) and str(message.error) == str(error)


def test_failing_worker_sends_one_line_and_a_traceback() -> None:
    worker = Worker(fail)
    message = worker.receive()
    assert isinstance(message, Failed) and message.line == "ZeroDivisionError: nothing left"
    assert "in fail" in message.traceback
    assert worker.exit_reason() == "exited with status 1"
    worker.close()


def test_connection_error_of_the_work_is_reported_as_failure() -> None:
    worker = Worker(lose_a_connection)
    message = worker.receive()
    worker.close(10.0)
    assert isinstance(message, Failed) and message.line == "ConnectionResetError: a game's server is gone"


def test_worker_ignores_ctrl_c_sigterm_and_sighup() -> None:
    worker = Worker(signal_myself)
    assert worker.receive() == "still here" and worker.receive() == Done()
    worker.close(10.0)


OWNER = """
import time
from expgen.fast.processes import Worker
from tests.fast.test_processes import echo
worker = Worker(echo, {"GREETING": "hello"})
print(worker.receive()[1], flush=True)
time.sleep(60)
"""


def test_worker_ends_when_its_parent_is_killed() -> None:
    """The script has no `__main__` guard: a worker does not run it again."""
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert is_running(pid)
        owner.kill()
    until(lambda: not is_running(pid))
