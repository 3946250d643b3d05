"""The batch script in bash, with real Ray nodes, a real job and replacements for Slurm's programs."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.children import is_running
from tests.cluster.conftest import PATIENCE, until

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[2]
STAND_INS = {
    "srun": 'while [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"',  # all nodes are this machine
    "scontrol": 'if [ "$1" = requeue ]; then touch "$REQUEUED"; else printf "node1\\nnode2\\n"; fi',
    "expgen": f'cd "{REPOSITORY}" && exec "{sys.executable}" -m expgen.cli.main "$@"',
}


class Batch:
    """Start the script for a run of `updates` updates, as Slurm would on two nodes."""

    def __init__(self, command, small, folder: Path) -> None:
        self.command, self.small, self.folder = command, small, folder
        self.port = free_port()
        self.started: list[subprocess.Popen[str]] = []
        (folder / "programs").mkdir()
        for name, text in STAND_INS.items():
            self.replace_program(name, text)

    def replace_program(self, name: str, text: str) -> None:
        program = self.folder / "programs" / name
        program.write_text(f"#!/usr/bin/env bash\n{text}\n")
        program.chmod(0o755)

    def __call__(self, updates: int) -> subprocess.Popen[str]:
        path = f"{self.folder / 'programs'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {
            **os.environ, "PATH": path, "SLURM_JOB_ID": str(self.port - 20_000), "SLURM_JOB_NODELIST": "node[1-2]",
            "SLURM_JOB_NUM_NODES": "2", "REQUEUED": str(self.folder / "requeued"), "RAY_worker_niceness": "0",
        }  # fmt: skip
        flags = self.small.flags(self.folder / "run", updates, algo="ppo", resume=True)
        _, script, _ = self.command("slurm", "--nodes", 2, "--gpus", 0, "--cpus", 1, "--", *flags)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.started.append(subprocess.Popen(["bash", "-c", script], env=environment, start_new_session=True, **pipes))
        return self.started[-1]

    def end(self) -> None:
        """Kill all processes of the batch, as Slurm does, and check that none is left."""
        for process in self.started:
            for pid in of_session(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        until(lambda: not of_cluster(self.port), "the nodes to end")

    def kill(self) -> None:
        for pid in [pid for process in self.started for pid in of_session(process.pid)] + of_cluster(self.port):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def batch(command, small, tmp_path: Path) -> Iterator[Batch]:
    made = Batch(command, small, tmp_path)
    yield made
    made.kill()


def free_port() -> int:
    for port in range(20_000 + os.getpid() % 5_000, 30_000):
        with socket.socket() as found:
            if found.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("no free port")


def of_session(leader: int) -> list[int]:
    """Return the descendants of bash."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and is_running(int(name))]
    return [pid for pid in pids if pid != os.getpid() and session(pid) == leader]


def session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def of_cluster(port: int) -> list[int]:
    """Return Ray's processes, whose command lines contain the head's port."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and is_running(int(name)):
            try:
                words = Path(f"/proc/{name}/cmdline").read_text().split("\0")
            except OSError:
                continue
            if any(word.endswith((f":{port}", f"={port}")) for word in words):
                found.append(int(name))
    return found


def test_slurm_script_runs_a_job_on_two_nodes(batch, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    script = batch(2)
    assert script.wait(PATIENCE) == 0
    batch.end()
    output = script.stdout.read()
    assert "2 of 2 nodes are up" in output and "done: " in output
    assert not (tmp_path / "requeued").exists()


def test_slurm_script_forwards_sigterm_and_requeues(batch, tmp_path: Path) -> None:
    started = tmp_path / "started"
    batch.replace_program("ray", 'printf " 1 node_a\\n 1 node_b\\n"')
    batch.replace_program("expgen", f'trap "exit 143" TERM; touch "{started}"; while :; do sleep 0.1; done')
    script = batch(2)
    until(started.exists, "the command")
    script.send_signal(signal.SIGTERM)  # Slurm signals the batch shell only
    assert script.wait(PATIENCE) == 143
    assert (tmp_path / "requeued").exists()
