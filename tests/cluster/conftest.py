"""A Ray cluster of several node processes on this machine, and faults in it."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal
from tests.children import is_running
from tests.storage.s3_server import Faults

PATIENCE = 180.0  # seconds, on a busy machine


def until(condition: Callable[[], Any], what: str) -> Any:
    """Return the result of `condition` once it is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if result := condition():
            return result
        time.sleep(0.02)
    raise AssertionError(f"waited {PATIENCE:.0f} s for {what}")


def worker_of(run: Path) -> int | None:
    """Return the process that works on a run."""
    entries = read_journal(RunFolder(run))
    return entries[-1].pid if entries and entries[-1].state == "running" and is_running(entries[-1].pid) else None


class LocalCluster:
    """A head without CPUs for tasks and nodes with one CPU each, so that every task is on a node that can be killed."""

    def __init__(self, nodes: int) -> None:
        from ray.cluster_utils import Cluster

        small = {"object_store_memory": 80_000_000, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        self.nodes = [self.add() for _ in range(nodes)]
        self.address = self.cluster.address
        self.session = self.cluster.head_node.get_session_dir_path()

    def add(self) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=80_000_000)

    @contextlib.contextmanager
    def more(self, **resources: float) -> Iterator[None]:
        """Add a node with these resources for a while; declared GPUs need not exist."""
        node = self.cluster.add_node(object_store_memory=80_000_000, **resources)
        try:
            yield
        finally:
            self.cluster.remove_node(node)

    def kill_node(self, index: int) -> None:
        """Kill a node and start a new one in its place."""
        self.cluster.remove_node(self.nodes[index], allow_graceful=False)
        self.nodes[index] = self.add()

    def node_of(self, worker: int) -> int:
        """Return the index of the node of the process `worker`."""
        raylets = [node.all_processes["raylet"][0].process.pid for node in self.nodes]
        return raylets.index(_parent(worker))

    def workers(self) -> list[int]:
        """Return the processes that run our tasks."""
        ours = set(self.processes())
        return [pid for pid in _pids() if _command(pid).startswith("ray::_run_in_worker") and _parent(pid) in ours]

    def processes(self) -> list[int]:
        """Return all processes of the cluster, workers included, by its session name."""
        return [pid for pid in _pids() if self.session in _command(pid) and pid != os.getpid()]


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text() if is_running(pid) else ""
    return ""


def _parent(pid: int) -> int | None:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


@pytest.fixture(scope="package")
def cluster(s3: Faults) -> Iterator[LocalCluster]:
    """A cluster whose nodes know the S3 server, which is started first."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "10")
        patch.setenv("RAY_worker_niceness", "0")  # else workers starve on a busy machine
        made = LocalCluster(2)
        yield made
        made.cluster.shutdown()
        until(lambda: not made.processes(), "the cluster's processes to end")
