"""jobs.csv: what a reproduction set out to do and what became of it; the last line of a job counts."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from expgen.errors import InputError, unwritable
from expgen.files import write_whole
from expgen.reproduce.job import Job, JobResult


class JobLine(NamedTuple):
    """One line of jobs.csv."""

    job: str
    status: str  # of a JobResult, or waiting
    seconds: float
    message: str


class JobLedger:
    """The file, written by whoever hands out the jobs and by nobody else."""

    def __init__(self, out: Path) -> None:
        self.path = out / "jobs.csv"

    def plan(self, jobs: Iterable[Job]) -> None:
        """Begin anew: every job waits."""
        lines = [JobLine._fields, *(JobLine(job.name, "waiting", 0.0, "") for job in jobs)]
        write_whole(self.path, _text(lines).encode())

    def note(self, result: JobResult) -> None:
        """Add what became of a job."""
        line = JobLine(result.job.name, result.status, round(result.seconds, 1), result.message)
        try:
            with open(self.path, "a", newline="") as file:
                file.write(_text([line]))
        except OSError as error:
            raise unwritable(self.path, error) from None

    def read(self) -> dict[str, JobLine]:
        """The last line of every job, in the order planned; nothing where there is no such file."""
        if not self.path.exists():
            return {}
        try:
            with open(self.path, newline="") as file:
                rows = [row for row in csv.reader(file) if len(row) == len(JobLine._fields)][1:]
            return {row[0]: JobLine(row[0], row[1], float(row[2]), row[3]) for row in rows}
        except (OSError, ValueError, csv.Error):
            raise InputError(f"{self.path} is no list of jobs; accepted: one that expgen reproduce wrote") from None


def _text(lines: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()
