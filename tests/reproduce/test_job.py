"""The job list of a reproduction, and dependencies of jobs."""

from pathlib import Path

import pytest

from expgen.errors import InputError
from expgen.reproduce.job import Job, read_job_list, write_job_list

JOBS = [Job(name, "minimaze", "ppo", "smoke", {}) for name in ("a", "b")]


def test_job_list_is_written_and_rejects_another_scale(tmp_path: Path) -> None:
    assert read_job_list(tmp_path) == []
    write_job_list(tmp_path, JOBS, "smoke")
    write_job_list(tmp_path, JOBS[:1], "smoke")
    assert read_job_list(tmp_path) == ["a"]
    with pytest.raises(InputError, match="holds runs of --scale smoke; accepted: smoke, or another folder"):
        write_job_list(tmp_path, JOBS, "laptop")


@pytest.mark.parametrize("content", ["[]", "{}", "0", "null", '""', '{"jobs": "a"}'])
def test_malformed_job_list_is_rejected(tmp_path: Path, content: str) -> None:
    (tmp_path / "jobs.json").write_text(content)
    with pytest.raises(InputError, match="is not a list of jobs"):
        read_job_list(tmp_path)
    with pytest.raises(InputError, match="is not a list of jobs"):
        write_job_list(tmp_path, JOBS, "smoke")


def test_job_runs_after_the_jobs_it_needs() -> None:
    assert Job("c", "minimaze", "expgen", "smoke", {}, made_of=("a", "b")).after == ("a", "b")
    assert Job("c", "minimaze", "ppo", "smoke", {}, continues="a").after == ("a",)
