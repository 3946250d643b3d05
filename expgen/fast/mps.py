"""CUDA's multi-process service (MPS): several processes' kernels on one GPU at the same time, not in turns.

Its daemon needs no root. We start one for each run that has several worker processes, in a folder of its own, and a
guard beside it: a shell that waits for the end of its standard input, which comes when we close it or die, and then
stops the daemon. Without MPS everything works, slower.
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
PATIENCE = 20.0  # seconds that the daemon may take to start or to stop
_GUARD = 'cat > /dev/null; echo quit | timeout "$3" "$1" > /dev/null 2>&1; rm -rf "$2"'


@contextlib.contextmanager
def cuda_mps(patience: float = PATIENCE) -> Iterator[dict[str, str]]:
    """The environment variables by which processes find the daemon; none where it is not ours or does not start.

    A process must have them before it first uses CUDA.
    """
    program = shutil.which(CONTROL)
    if program is None or PIPES in os.environ:  # the user's own daemon serves our workers too
        yield {}
        return
    folder = Path(tempfile.mkdtemp(prefix="expgen-mps-"))
    variables = {PIPES: str(folder / "pipes"), LOGS: str(folder / "logs")}
    for place in variables.values():
        Path(place).mkdir()
    # which GPUs are visible is the workers' choice: a daemon that saw fewer would number them anew
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"} | variables
    guard = subprocess.Popen(
        ["sh", "-c", _GUARD, "guard", program, str(folder), f"{patience:g}"],
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # Ctrl-C is not meant for it
    )
    assert guard.stdin is not None
    try:
        yield variables if _starts(program, environment, patience) else {}
    finally:
        guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(2 * patience)


def _starts(program: str, environment: dict[str, str], patience: float) -> bool:
    """Start the daemon and return whether it answers; it inherits no open files, which it would keep open."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "timeout": patience}
    try:
        subprocess.run([program, "-d"], check=True, stdin=subprocess.DEVNULL, **silent)  # type: ignore[call-overload]
        subprocess.run([program], check=True, input=b"get_default_active_thread_percentage\n", **silent)  # type: ignore[call-overload]
    except (OSError, subprocess.SubprocessError):
        return False
    return True
