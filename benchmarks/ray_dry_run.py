"""Run no-op jobs by RayEngine; measure scheduling rate and memory: `python benchmarks/ray_dry_run.py [JOBS]`.

Every tenth job depends on the one before it, as a job that continues a run does.
"""

import argparse
import resource
import time
from pathlib import Path

from expgen.cluster.engine import Task, TaskResources
from expgen.cluster.ray_engine import RayEngine
from expgen.reproduce.job import Job, JobResult
from expgen.training.loop import Watcher


class NoWork:
    """A task that does nothing but carries its job, so that it is as large as a real one when serialized."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self, watcher: Watcher) -> JobResult:
        return JobResult(self.job, "done")


def main(count: int) -> None:
    settings = {"members": 10, "steps": 25_000_000, "eval_every": 1_000_000}
    jobs = [Job(f"game{index}-ppo", "minimaze", "ppo", "paper", settings) for index in range(count)]
    tasks = [
        Task(job.name, NoWork(job), (jobs[index - 1].name,) if index % 10 == 9 else (), Path("/nowhere") / job.name)
        for index, job in enumerate(jobs)
    ]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    engine = RayEngine(resources=TaskResources(cpus=1))
    ended, first = 0, 0.0
    for _ in engine.run(tasks, Watcher()):
        first = first or time.monotonic()
        ended += 1
    seconds = time.monotonic() - first
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{ended} jobs, {ended / seconds:,.0f} per second after the first; peak memory of the driver:", end=" ")
    print(f"{after / 1024:,.0f} MiB, {(after - before) / 1024:,.0f} MiB more than before connecting")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="?", type=int, default=10_000, metavar="JOBS", help="number of jobs")
    main(parser.parse_args().jobs)
