"""From names of exhibits to a report: run what is missing, gather the scores, write the page."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from expgen.errors import InputError
from expgen.evaluation.scores import read_scores, write_rows
from expgen.paper.exhibits import EXHIBITS
from expgen.report.score_table import ScoreTable, as_entries, rows_of
from expgen.report.section import Section
from expgen.report.write import write_report
from expgen.reproduce.engine import ENGINES
from expgen.reproduce.job import Job, JobResult
from expgen.reproduce.jobs import jobs_of
from expgen.reproduce.pictures import picture_sections
from expgen.reproduce.scale import Scale
from expgen.reproduce.settings_tables import settings_sections
from expgen.reproduce.work import Watcher, made_file, run_job, score_files
from expgen.training.checkpoint import write_whole

KEPT = ("command", "config", "hardware", "minutes")


def reproduce(
    names: Sequence[str],
    scale: Scale,
    out: Path,
    engine: str = "local",
    games: Sequence[str] | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
    on_result: Callable[[JobResult], None] = lambda result: None,
) -> tuple[Path | None, list[str]]:
    """The page, and a line for everything that could not be had; no page where nothing could, or after a stop."""
    claim_folder(out, scale)
    jobs = jobs_of(names, scale, games)
    asked = "all" if set(names) == set(EXHIBITS) else " ".join(names)
    command = f"expgen reproduce {asked} --scale {scale.name}"
    work = partial(run_job, out=out, command=command, device=device, watcher=watcher)
    complaints = []
    for result in ENGINES[engine]().run(jobs, work):
        on_result(result)
        if result.status == "stopped":
            return None, [f"{result.job.name}: stopped; the same command goes on from there"]
        if result.status in ("refused", "failed"):
            complaints.append(f"{result.job.name}: {result.status}: {result.message}")
    explorer = next((out / "runs" / job.name for job in jobs if job.algo == "maxent"), None)
    pictures, more = picture_sections(names, explorer)
    others = [*pictures, *settings_sections(names)]
    complaints += more
    if not gather(jobs, out) and not others:
        return None, complaints
    return _report(names, scale, out, others), complaints


def claim_folder(out: Path, scale: Scale) -> None:
    """A folder holds runs of one scale, for runs of another bear the same names."""
    file = out / "scale.json"
    if file.exists():
        held = json.loads(file.read_text())["scale"]
        if held != scale.name:
            raise InputError(f"--out {out} holds runs of --scale {held}; accepted: {held}, or another folder")
    write_whole(file, json.dumps({"scale": scale.name}).encode())


def gather(jobs: Sequence[Job], out: Path) -> int:
    """scores.csv and provenance.csv of all that is done; how many rows that is."""
    scores, provenance = io.StringIO(), io.StringIO()
    rows = []
    writer = csv.writer(provenance, lineterminator="\n")
    writer.writerow(("row", *KEPT))
    for job in jobs:
        made = json.loads(made_file(job, out).read_text()) if made_file(job, out).exists() else {}
        for file in score_files(job, out):
            for row in read_scores(file) if file.exists() else ():
                rows.append(row)
                writer.writerow((len(rows), *(made.get(name, "") for name in KEPT)))
    write_rows(scores, rows)
    write_whole(out / "scores.csv", scores.getvalue().encode())
    write_whole(out / "provenance.csv", provenance.getvalue().encode())
    return len(rows)


def _report(names: Sequence[str], scale: Scale, out: Path, others: Sequence[Section]) -> Path:
    rows = rows_of(out / "scores.csv")
    entries = as_entries(rows, [out]) if rows else []
    title = f"{', '.join(name.replace('-', ' ').capitalize() for name in names)} at {scale.name} scale"
    if len(names) > 3:
        title = f"{len(names)} tables and figures at {scale.name} scale"
    return write_report(ScoreTable(entries, resamples=scale.resamples), out, title, others, names)
