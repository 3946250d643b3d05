"""Job: one run to train, or agent to compose, and how to score it. Plain data: any machine can be handed one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from expgen.errors import InputError
from expgen.files import write_whole


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
    status: Literal["done", "skipped", "refused", "failed", "stopped"]
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


HEADER = "job"


def write_job_list(out: Path, jobs: Iterable[Job]) -> None:
    """Write the names of `jobs` to the folder `out` of a reproduction."""
    write_whole(_file(out), "".join(f"{name}\n" for name in (HEADER, *(job.name for job in jobs))).encode())


def read_job_list(out: Path) -> list[str]:
    """The names of the jobs in the folder `out`; none if it is not a reproduction's."""
    if not _file(out).exists():
        return []
    try:
        header, *lines = _file(out).read_text().splitlines()
        if header.partition(",")[0] != HEADER:
            raise ValueError(header)
    except (OSError, ValueError):
        raise InputError(f"{_file(out)} is not a list of jobs that expgen reproduce wrote") from None
    return list(dict.fromkeys(line.partition(",")[0] for line in lines))  # earlier versions wrote more columns


def _file(out: Path) -> Path:
    return out / "jobs.csv"
