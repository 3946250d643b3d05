"""Job: one run to train, or agent to compose, and how to score it. Plain data: any machine can be handed one."""

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
    """One agent of a run, played on both splits."""

    learner: str | None = None  # one policy alone, `each` of them; None: the run's agent, or every member
    consensus: Mapping[str, Any] = field(default_factory=dict)  # settings of an ensemble to change

    @property
    def name(self) -> str:
        """Names its file: `agent-leader3`, `each`."""
        changes = (f"{key}{value}" for key, value in self.consensus.items())
        return "-".join((self.learner or "agent", *changes))


@dataclass(frozen=True)
class Job:
    """Train `algo` on `env` with `settings`, or compose such an agent, then score it."""

    name: str  # of its run folder or agent; jobs of one name are the same
    env: str
    algo: str
    preset: str
    settings: Mapping[str, Any]
    label: str = ""  # what sets its agents apart in reports, as in `levels=500`
    continues: str = ""  # a job done before, whose run this one trains on for more steps
    made_of: tuple[str, ...] = ()  # jobs done before, whose policies are its members and its explorer: it trains none
    scorings: tuple[Scoring, ...] = (Scoring(),)
    episodes: int = 500

    @property
    def after(self) -> tuple[str, ...]:
        """Jobs whose runs it needs."""
        return (*self.made_of, self.continues) if self.continues else self.made_of


@dataclass(frozen=True)
class JobResult:
    """What became of a job."""

    job: Job
    status: Status
    message: str = ""
    seconds: float = 0.0


def merged(jobs: Iterable[Job]) -> list[Job]:
    """Each run once, with all that is asked of it, in the order of first mention."""
    known: dict[str, Job] = {}
    for job in jobs:
        if job.name in known:
            before = known[job.name]
            extra = tuple(scoring for scoring in job.scorings if scoring not in before.scorings)
            job = replace(before, scorings=before.scorings + extra)
        known[job.name] = job
    return list(known.values())


def write_job_list(out: Path, jobs: Iterable[Job], scale: str) -> None:
    """Write the names of `jobs` to the folder `out` of a reproduction, which holds runs of one `scale`.

    InputError if it holds those of another, for they bear the same names.
    """
    file, held = out / JOB_LIST, _read(out).get("scale", scale)
    if held != scale:
        raise InputError(f"--out {out} holds runs of --scale {held}; accepted: {held}, or another folder")
    write_atomic(file, json.dumps({"scale": scale, "jobs": [job.name for job in jobs]}, indent=1).encode())


def read_job_list(out: Path) -> list[str]:
    """The names of the jobs in the folder `out`; none if it is not a reproduction's."""
    return list(map(str, _read(out).get("jobs", ())))


def _read(out: Path) -> dict[str, Any]:
    file = out / JOB_LIST
    if not file.exists():
        return {}
    found = read_json(file)
    if not (isinstance(found, dict) and isinstance(found.get("jobs"), list)):
        raise InputError(f"{file} is not a list of jobs that expgen reproduce wrote")
    return found
