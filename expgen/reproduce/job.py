"""Job: one run to train, or one agent to compose, and how to score it. Picklable, so that any machine can run it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from expgen.errors import InputError
from expgen.files import read_json, write_atomic

JOB_LIST = "jobs.json"
Status = Literal["done", "skipped", "refused", "failed", "stopped"]


@dataclass(frozen=True)
class Scoring:
    """One agent of a run, to evaluate on both splits."""

    learner: str | None = None  # one policy, or `each`; None: the run's agent, or every member
    consensus: Mapping[str, Any] = field(default_factory=dict)  # overrides of the ensemble's settings

    @property
    def name(self) -> str:
        """Return the name of its score file: `agent-leader3`, `each`."""
        overrides = (f"{key}{value}" for key, value in self.consensus.items())
        return "-".join((self.learner or "agent", *overrides))


@dataclass(frozen=True)
class Job:
    """Train `algo` on `env` with `settings`, or compose such an agent, then evaluate it."""

    name: str  # of its run folder or agent; jobs with the same name are the same job
    env: str
    algo: str
    preset: str
    settings: Mapping[str, Any]
    label: str = ""  # added to the settings of its rows, such as `levels=500`
    continues: str = ""  # an earlier job whose run is trained for more steps
    made_of: tuple[str, ...] = ()  # earlier jobs whose policies are its members and explorer; nothing is trained
    scorings: tuple[Scoring, ...] = (Scoring(),)
    episodes: int = 500

    @property
    def after(self) -> tuple[str, ...]:
        """Return the names of the jobs that must end first."""
        return (*self.made_of, self.continues) if self.continues else self.made_of


@dataclass(frozen=True)
class JobResult:
    """How a job ended."""

    job: Job
    status: Status
    message: str = ""
    seconds: float = 0.0


def merged(jobs: Iterable[Job]) -> list[Job]:
    """Merge jobs of the same name, with the scorings of all of them, in the order of first appearance."""
    known: dict[str, Job] = {}
    for job in jobs:
        if job.name in known:
            before = known[job.name]
            extra = tuple(scoring for scoring in job.scorings if scoring not in before.scorings)
            job = replace(before, scorings=before.scorings + extra)
        known[job.name] = job
    return list(known.values())


def write_job_list(out: Path, jobs: Iterable[Job], scale: str) -> None:
    """Write the names of `jobs` to the folder `out` of a reproduction.

    Raises InputError if the folder has runs of another scale, since they have the same names.
    """
    old_scale = _read(out).get("scale", scale)
    if old_scale != scale:
        raise InputError(f"--out {out} holds runs of --scale {old_scale}; accepted: {old_scale}, or another folder")
    write_atomic(out / JOB_LIST, json.dumps({"scale": scale, "jobs": [job.name for job in jobs]}, indent=1).encode())


def read_job_list(out: Path) -> list[str]:
    """Return the names of the jobs in the folder `out`; empty if it is not a reproduction."""
    return list(map(str, _read(out).get("jobs", ())))


def _read(out: Path) -> dict[str, Any]:
    file = out / JOB_LIST
    if not file.exists():
        return {}
    data = read_json(file)
    if not (isinstance(data, dict) and isinstance(data.get("jobs"), list)):
        raise InputError(f"{file} is not a list of jobs that expgen reproduce wrote")
    return data
