"""run_job: train a job's run, score it, keep its rows. What is done already is not done again."""

import dataclasses
import io
import json
import shutil
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from expgen.agents.description import AgentDescription
from expgen.cluster.task import Watcher
from expgen.errors import InputError
from expgen.evaluation.scores import SPLITS, Score, Split, write_rows
from expgen.exploration.rows import EXPLORATION_FILE, exploration_row
from expgen.exploration.rows import FILE as EXPLORATION
from expgen.provenance import commit
from expgen.reproduce.job import Job, JobResult, Scoring
from expgen.reproduce.spent import Spent
from expgen.runs.agent_files import read_agent
from expgen.runs.curves import curve_rows
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.scoring import ScoredAgent
from expgen.runs.train import RunResult, train
from expgen.storage.place import Place, below, is_url
from expgen.storage.scratch import scratch_folder
from expgen.storage.workspace import workspace
from expgen.training.checkpoint import sweep_parts, write_whole
from expgen.training.resources import hardware, resolve_device

CURVE = "curve"  # the file of scores taken while training
SPENT = "spent.json"


def run_job(job: Job, out: Place, command: str, device: str = "auto", watcher: Watcher | None = None) -> JobResult:
    """Train and score; bad input and failures are told in the result, so that other jobs go on."""
    watcher = watcher or Watcher()
    if not is_url(out):
        return _run_job(job, Path(out), out, command, device, watcher)
    began = time.monotonic()
    here = scratch_folder()
    try:
        with workspace(str(below(out, "scores", job.name)), made_file(job, here).parent) as rows:
            if _is_done(job, here):
                return JobResult(job, "skipped")
            with workspace(str(below(out, "runs", job.name)), here / "runs" / job.name) as run:
                should_stop = run.stop_when_lost(rows.stop_when_lost(watcher.should_stop))
                result = _run_job(job, here, out, command, device, replace(watcher, should_stop=should_stop))
    except InputError as error:
        return JobResult(job, "refused", " ".join(str(error).split()), time.monotonic() - began)
    shutil.rmtree(here, ignore_errors=True)
    return result


def _run_job(job: Job, here: Path, out: Place, command: str, device: str, watcher: Watcher) -> JobResult:
    """In the folder `here`; what is adopted is found at `out`."""
    began = time.monotonic()
    if _is_done(job, here):
        return JobResult(job, "skipped")
    try:
        sweep_parts(made_file(job, here).parent)
        spent = Spent(made_file(job, here).with_name(SPENT))
        result = _train(job, here, out, device, _noting(spent, watcher))
        spent.note()
        if result.failed:
            return JobResult(job, "failed", "; ".join(result.failed), time.monotonic() - began)
        if result.diverged:
            return JobResult(job, "failed", f"{', '.join(result.diverged)} diverged", time.monotonic() - began)
        if not result.is_complete:
            return JobResult(job, "stopped", "goes on where it stopped", time.monotonic() - began)
        _score(job, here, result, device)
        spent.note()
        made = {
            "command": command, "config": result.config.digest(), "hardware": hardware(resolve_device(device)),
            "minutes": f"{spent.seconds / 60:.1f}",
        }  # fmt: skip
        write_whole(made_file(job, here), json.dumps(made, indent=2).encode())
    except InputError as error:
        return JobResult(job, "refused", " ".join(str(error).split()), time.monotonic() - began)
    return JobResult(job, "done", "", time.monotonic() - began)


def _noting(spent: Spent, watcher: Watcher) -> Watcher:
    """`watcher`, and `spent` notes the time as rows come."""

    def on_row(learner: str, row: dict[str, float]) -> None:
        spent.note_now_and_then()
        watcher.on_row(learner, row)

    return replace(watcher, on_row=on_row)


def _is_done(job: Job, out: Path) -> bool:
    return all(file.exists() for file in (*score_files(job, out), made_file(job, out)))


def score_files(job: Job, out: Path) -> list[Path]:
    """Where a job's rows are kept: the curve first, then each scoring."""
    names = [CURVE, *(scoring.name for scoring in job.scorings)]
    return [out / "scores" / job.name / f"{name}.csv" for name in names]


def made_file(job: Job, out: Path) -> Path:
    """What made a job's rows."""
    return out / "scores" / job.name / "made.json"


def _train(job: Job, here: Path, out: Place, device: str, watcher: Watcher) -> RunResult:
    watch: dict[str, Any] = {field.name: getattr(watcher, field.name) for field in dataclasses.fields(watcher)}
    adopted = [below(out, "runs", name) for name in job.adopt]
    where: dict[str, Any] = {"run": here / "runs" / job.name, "resume": True, "device": device, "adopt": adopted}
    return train(job.env, job.algo, job.preset, processes="auto", **where, **watch, **job.settings)


def _score(job: Job, out: Path, result: RunResult, device: str) -> None:
    curve, *others = score_files(job, out)
    rows = [] if job.adopt else [row for _, row in curve_rows(result.folder, commit())]  # who adopts trains nothing
    _keep_rows(curve, [_labelled(row, job) for row in rows])
    agent = read_agent(result.folder.path)
    for scoring, file in zip(job.scorings, others, strict=True):
        if not file.exists():
            splits = SPLITS if result.config.has_unseen_levels else SPLITS[:1]
            _keep(file, job, [one for split in splits for one in _play(agent, job, scoring, split, device)])


def _play(agent: AgentDescription, job: Job, scoring: Scoring, split: Split, device: str) -> list[ScoredAgent]:
    seed = int(scoring.consensus.get("leader", 0))
    request = EvaluationRequest(
        split, None, job.episodes, seed, scoring.learner, device=device, consensus=scoring.consensus
    )
    return list(score_all(agent, request))


def explored_file(file: Path) -> Path:
    """Where what was explored is kept of a scoring whose rows are in `file`."""
    return file.with_name(f"{file.stem}-{EXPLORATION_FILE}")


def _keep(file: Path, job: Job, scored: list[ScoredAgent]) -> None:
    """The score file last: where it is there, so is all else."""
    scored = [one._replace(score=_labelled(one.score, job)) for one in scored]
    if explored := [exploration_row(one.score, one.exploration) for one in scored if one.exploration is not None]:
        write_whole(explored_file(file), EXPLORATION.text(explored).encode())
    _keep_rows(file, [one.score for one in scored])


def _keep_rows(file: Path, rows: Iterable[Score]) -> None:
    text = io.StringIO()
    write_rows(text, rows)
    write_whole(file, text.getvalue().encode())


def _labelled(row: Score, job: Job) -> Score:
    """`row` with what sets the job's agents apart from others of the same name."""
    return replace(row, settings=f"{row.settings} {job.label}".strip())
