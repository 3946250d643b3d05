"""reproduce: run the jobs of exhibits that are not done, collect their scores, write the report."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from expgen.cluster.engine import Engine, LocalEngine, Task
from expgen.errors import error_line
from expgen.evaluation import scores
from expgen.exploration import rows as exploration
from expgen.files import read_json, write_atomic
from expgen.paper.exhibits import EXHIBITS
from expgen.report import provenance
from expgen.report.entry import number_entries, read_entries
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section
from expgen.report.write import write_report
from expgen.reproduce.job import Job, JobResult, write_job_list
from expgen.reproduce.jobs import jobs_of
from expgen.reproduce.other_exhibits import other_sections
from expgen.reproduce.run_job import MADE, RUNS, SCORES, explored_file, run_job, score_files
from expgen.reproduce.scale import Scale
from expgen.storage.location import Location, absolute, is_url, join
from expgen.storage.scratch import scratch_folder
from expgen.storage.store import StorageOutage
from expgen.storage.view import fetch
from expgen.storage.workspace import workspace
from expgen.training.loop import Watcher


def reproduce(
    names: Sequence[str],
    scale: Scale,
    out: Location,
    engine: Engine | None = None,
    games: Sequence[str] | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
    on_result: Callable[[JobResult], None] = lambda result: None,
) -> tuple[Path | None, list[str]]:
    """Return the report's page and a list of errors; the page is None if it would be empty, or after a stop.

    names: exhibits, as in EXHIBITS.
    out: folder or URL of runs, scores and report.
    engine: where jobs run (default: this machine).
    games: restricts the exhibits to some of their games.
    on_result: called with the result of each job.
    """
    jobs = jobs_of(names, scale, games)
    with _local_folder(out, watcher or Watcher()) as (here, watcher):
        write_job_list(here, jobs, scale.name)
        shown = "all" if set(names) == set(EXHIBITS) else " ".join(names)
        command = f"expgen reproduce {shown} --scale {scale.name}"
        errors, num_ended = [], 0
        for result in _run(jobs, absolute(out), command, engine or LocalEngine(), device, watcher):
            on_result(result)
            num_ended += result.status != "stopped"
            if result.status in ("refused", "failed"):
                errors.append(f"{result.job.name}: {result.status}: {result.message}")
        if num_ended < len(jobs):
            return None, [f"{len(jobs) - num_ended} of {len(jobs)} jobs stopped; the same command continues them"]
        explorer = next((join(out, RUNS, job.name) for job in jobs if job.algo == "maxent"), None)
        other, other_errors = other_sections(names, explorer)
        source = here
        if is_url(out):
            source = scratch_folder()
            for job in jobs:
                fetch(str(join(out, SCORES, job.name)), source / SCORES / job.name)
        is_empty = not collect_rows(jobs, source, here) and not other
        return None if is_empty else _report(names, scale, here, other), errors + other_errors


@contextlib.contextmanager
def _local_folder(out: Location, watcher: Watcher) -> Iterator[tuple[Path, Watcher]]:
    """Yield the folder of the job list, the collected rows and the report; for a URL, a workspace that uploads them."""
    if not is_url(out):
        yield Path(out), watcher
        return
    with workspace(str(out)) as space:
        try:
            yield space.folder, replace(watcher, should_stop=space.stop_when_taken_over(watcher.should_stop))
        except StorageOutage as outage:  # the next command writes this folder again
            raise StorageOutage(f"{outage}; the same command continues") from None


def _run(
    jobs: Sequence[Job], out: Location, command: str, engine: Engine, device: str, watcher: Watcher
) -> Iterator[JobResult]:
    """Yield the results of jobs as they end."""
    tasks = {
        Task(job.name, partial(run_job, job, out, command, device), job.after, join(out, RUNS, job.name)): job
        for job in jobs
    }
    for ended in engine.run(list(tasks), watcher):
        error = ended.error
        yield ended.value if error is None else JobResult(tasks[ended.task], "failed", error_line(error))


def collect_rows(jobs: Sequence[Job], source: Path, out: Path) -> int:
    """Write the rows of all jobs in `source` to scores.csv and exploration.csv in `out`; return how many scores."""
    files = [file for job in jobs for file in score_files(job, source)]
    _collect(exploration.FILE, map(explored_file, files), out / exploration.EXPLORATION_FILE)
    return _collect(scores.FILE, files, out / "scores.csv")


def _collect(kind: scores.TableFile, files: Iterable[Path], target: Path) -> int:
    """Write the rows of `files` to `target` and their provenance to a file beside it."""
    rows, made = [], []
    for file in files:
        made_file = file.with_name(MADE)
        facts = read_json(made_file) if made_file.exists() else {}
        cells = [facts.get(name, "") for name in provenance.FILE.columns[1:]]
        for row in kind.rows_so_far(file):
            rows.append(row)
            made.append(provenance.ProvenanceRow(len(rows), *cells))
    write_atomic(target, kind.text(rows).encode())
    write_atomic(provenance.provenance_file(target), provenance.FILE.text(made).encode())
    return len(rows)


def _report(names: Sequence[str], scale: Scale, out: Path, others: Sequence[Section]) -> Path:
    rows = read_entries(out / "scores.csv")
    entries = number_entries(rows, [out]) if rows else []
    shown = ", ".join(EXHIBITS[name].title for name in names) if len(names) < 4 else f"{len(names)} tables and figures"
    title = f"{shown} at {scale.name} scale"
    return write_report(ScoreTable(entries, resamples=scale.resamples), out, title, others, names)
