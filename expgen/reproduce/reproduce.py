"""From names of exhibits to a report: run what is missing, gather the scores, write the page."""

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
from expgen.reproduce.scale import Scale
from expgen.reproduce.work import MADE, RUNS, SCORES, explored_file, run_job, score_files
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
    """The page, and a line for everything that could not be had; no page where nothing could, or after a stop.

    `names` are exhibits; `out` is the folder or URL of runs, scores and report; `engine` is where jobs run (default:
    here); `games` keeps to some of those that the exhibits ask for; `on_result` hears what became of each job.
    """
    jobs = jobs_of(names, scale, games)
    with _local_folder(out, watcher or Watcher()) as (here, watcher):
        write_job_list(here, jobs, scale.name)
        asked = "all" if set(names) == set(EXHIBITS) else " ".join(names)
        command = f"expgen reproduce {asked} --scale {scale.name}"
        complaints, ended_well = [], 0
        for result in _run(jobs, absolute(out), command, engine or LocalEngine(), device, watcher):
            on_result(result)
            ended_well += result.status != "stopped"
            if result.status in ("refused", "failed"):
                complaints.append(f"{result.job.name}: {result.status}: {result.message}")
        if ended_well < len(jobs):
            return None, [f"{len(jobs) - ended_well} of {len(jobs)} jobs stopped; the same command continues them"]
        explorer = next((join(out, RUNS, job.name) for job in jobs if job.algo == "maxent"), None)
        others, more = other_sections(names, explorer)
        rows = scratch_folder() if is_url(out) else here
        for job in jobs if is_url(out) else ():
            fetch(str(join(out, SCORES, job.name)), rows / SCORES / job.name)
        is_empty = not gather(jobs, rows, here) and not others
        return None if is_empty else _report(names, scale, here, others), complaints + more


@contextlib.contextmanager
def _local_folder(out: Location, watcher: Watcher) -> Iterator[tuple[Path, Watcher]]:
    """Where what concerns all jobs is kept; at a URL it is uploaded, each job's own by who runs it."""
    if not is_url(out):
        yield Path(out), watcher
        return
    with workspace(str(out)) as space:
        try:
            yield space.folder, replace(watcher, should_stop=space.stop_when_taken_over(watcher.should_stop))
        except StorageOutage as outage:  # the next command writes again what the URL lacks of this folder
            raise StorageOutage(f"{outage}; the same command continues") from None


def _run(
    jobs: Sequence[Job], out: Location, command: str, engine: Engine, device: str, watcher: Watcher
) -> Iterator[JobResult]:
    """What became of each job, as they end."""
    tasks = {
        Task(job.name, partial(run_job, job, out, command, device), job.after, join(out, RUNS, job.name)): job
        for job in jobs
    }
    for ended in engine.run(list(tasks), watcher):
        error = ended.error
        yield ended.answer if error is None else JobResult(tasks[ended.task], "failed", error_line(error))


def gather(jobs: Sequence[Job], kept: Path, out: Path) -> int:
    """Write scores.csv and exploration.csv of all that jobs have `kept`, with provenance; how many scores that is."""
    files = [file for job in jobs for file in score_files(job, kept)]
    _gather(exploration.FILE, map(explored_file, files), out / exploration.EXPLORATION_FILE)
    return _gather(scores.FILE, files, out / "scores.csv")


def _gather(kind: scores.TableFile, files: Iterable[Path], target: Path) -> int:
    """The rows of `files` in `target`, and what made each of them beside it."""
    rows, made = [], []
    for file in files:
        told = read_json(file.with_name(MADE)) if file.with_name(MADE).exists() else {}
        facts = [told.get(name, "") for name in provenance.FILE.columns[1:]]
        for row in kind.rows_so_far(file):
            rows.append(row)
            made.append(provenance.ProvenanceRow(len(rows), *facts))
    write_atomic(target, kind.text(rows).encode())
    write_atomic(provenance.provenance_file(target), provenance.FILE.text(made).encode())
    return len(rows)


def _report(names: Sequence[str], scale: Scale, out: Path, others: Sequence[Section]) -> Path:
    rows = read_entries(out / "scores.csv")
    entries = number_entries(rows, [out]) if rows else []
    shown = ", ".join(EXHIBITS[name].title for name in names) if len(names) < 4 else f"{len(names)} tables and figures"
    title = f"{shown} at {scale.name} scale"
    return write_report(ScoreTable(entries, resamples=scale.resamples), out, title, others, names)
