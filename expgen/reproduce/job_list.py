"""jobs.csv: the jobs of a reproduction in their order. What becomes of each is in the journal of its run."""

from collections.abc import Iterable
from pathlib import Path

from expgen.errors import InputError
from expgen.files import write_whole
from expgen.reproduce.job import Job

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
