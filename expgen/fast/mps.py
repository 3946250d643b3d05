"""CUDA's multi-process service (MPS): lets kernels of several processes run on one GPU at the same time.

Its daemon needs no root. A run with several worker processes starts a daemon in a folder of its own, and a guard: a
shell that waits until its standard input closes, because we close it or die, and then stops the daemon. Without MPS
training works but is slower.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
TIMEOUT = 20.0  # seconds for the daemon to start or to stop
_GUARD = 'cat > /dev/null; echo quit | timeout "$3" "$1" > /dev/null 2>&1; rm -rf "$2"'


@contextlib.contextmanager
def cuda_mps(timeout: float = TIMEOUT) -> Iterator[dict[str, str]]:
    """Start the daemon and yield the environment variables that worker processes need before they first use CUDA.

    The dictionary is empty if there is no MPS, the daemon does not start, or the user's own daemon runs.
    """
    program = shutil.which(CONTROL)
    if program is None or PIPES in os.environ:  # workers use the user's own daemon
        yield {}
        return
    folder = Path(tempfile.mkdtemp(prefix="expgen-mps-"))
    variables = {PIPES: str(folder / "pipes"), LOGS: str(folder / "logs")}
    for path in variables.values():
        Path(path).mkdir()
    # the daemon must see all GPUs, or it would renumber them; workers choose theirs
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"} | variables
    guard = subprocess.Popen(
        ["sh", "-c", _GUARD, "guard", program, str(folder), f"{timeout:g}"],
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # Ctrl-C must not reach it
    )
    assert guard.stdin is not None
    try:
        yield variables if _start_daemon(program, environment, timeout) else {}
    finally:
        guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(2 * timeout)


def _start_daemon(program: str, environment: dict[str, str], timeout: float) -> bool:
    """Start the daemon and return whether it responds; it inherits no open files, since it would keep them open."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "timeout": timeout}
    try:
        daemon = {"stdin": subprocess.DEVNULL, "start_new_session": True}  # like the guard
        subprocess.run([program, "-d"], check=True, **daemon, **silent)  # type: ignore[call-overload]
        subprocess.run([program], check=True, input=b"get_default_active_thread_percentage\n", **silent)  # type: ignore[call-overload]
    except (OSError, subprocess.SubprocessError):
        return False
    return True
