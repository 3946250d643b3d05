"""Scene: a two-node cluster, a driver that reproduces Table 1 on it, and a log of faults."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from expgen.reproduce.jobs import jobs_of
from expgen.reproduce.scale import SCALES
from expgen.storage.location import Location, is_url, join
from expgen.storage.store import Store
from expgen.storage.view import local_copy
from tests.cluster.conftest import LocalCluster, until, worker_of
from tests.storage.s3_server import Faults

WORDS = ["reproduce", "test_25m", "--scale", "smoke", "--device", "cpu"]
JOBS = [job.name for job in jobs_of(["table-1"], SCALES["smoke"])]


class AllDone(Exception):
    """No process is left that a fault could hit."""


class Scene:
    """The cluster, its driver, and a log of faults."""

    def __init__(self, out: Location, server: Faults | None = None) -> None:
        self.out, self.server = out, server
        self.log: list[dict[str, Any]] = []  # each fault and the driver's output
        self.cluster = LocalCluster(2)
        self.sessions = [self.cluster]
        self.seen: set[int] = set()
        self.starts = 0
        self.driver = self.start()

    def start(self) -> subprocess.Popen[str]:
        self.starts += 1
        place = ["--engine", "ray", "--address", self.cluster.address, "--cpus-per-job", "1", "--out", str(self.out)]
        return subprocess.Popen(
            [sys.executable, "-m", "expgen.cli.main", *WORDS, *place],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def worker(self) -> int:
        """Return a process that works on a run."""

        def find() -> int | None:
            if self.driver.poll() == 0:
                raise AllDone
            if self.driver.returncode is not None:
                self.end_driver()
                self.driver = self.start()
            looks = (local_copy(join(self.out, "runs", name), without_weights=True, max_age=10.0) for name in JOBS)
            return next((pid for run in looks if (pid := worker_of(run))), None)

        found = until(find, "a worker")
        self.seen.add(found)
        return found

    def end_driver(self) -> int:
        """Wait for the driver; return its exit status."""
        _, err = self.driver.communicate()
        last = (err.strip().splitlines() or [""])[-1]
        self.log[-1].setdefault("driver_said", last.replace(str(self.out), "OUT")[:160])
        return self.driver.returncode

    def done(self) -> int:
        if is_url(self.out):
            return sum(name.endswith("-made.json") for name in Store(str(self.out)).names("scores"))
        return len(list(Path(self.out).glob("scores/*/made.json")))


Fault = Callable[[Scene], None]
