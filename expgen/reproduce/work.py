"""run_job: train a job's run, score it, write its rows. What is done already is not done again."""

import contextlib
import dataclasses
import io
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from expgen.cluster.task import Watcher
from expgen.errors import InputError, TakenOver
from expgen.evaluation.scores import SPLITS, Score, Split, write_rows
from expgen.exploration.explore import Exploration, Mean
from expgen.files import sweep_parts, write_whole
from expgen.provenance import commit
from expgen.reproduce.job import Job, JobResult, Scoring
from expgen.runs.curves import curve_rows
from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal
from expgen.runs.request import EvaluationRequest, score_run
from expgen.runs.run_lock import RunLock, own_run
from expgen.runs.train import RunResult, train
from expgen.storage.location import Location, is_url, join
from expgen.storage.scratch import scratch_folder
from expgen.storage.workspace import workspace
from expgen.training.resources import hardware, resolve_device
from expgen.training.sessions import total_seconds

CURVE = "curve"  # the file of scores taken while training
OLD_TIME = "spent.json"  # seconds of work on a job, of earlier versions


def run_job(job: Job, out: Location, command: str, device: str = "auto", watcher: Watcher | None = None) -> JobResult:
    """Train and score; bad input and failures are told in the result, so that other jobs go on."""
    watcher = watcher or Watcher()
    if not is_url(out):
        return _run_job(job, Path(out), out, command, device, watcher)
    began = time.monotonic()
    here = scratch_folder()
    try:
        with workspace(str(join(out, "scores", job.name)), made_file(job, here).parent) as rows:
            if _is_done(job, here):
                return JobResult(job, "skipped")
            with workspace(str(join(out, "runs", job.name)), here / "runs" / job.name) as run:
                should_stop = run.stop_when_taken_over(rows.stop_when_taken_over(watcher.should_stop))
                result = _run_job(job, here, out, command, device, replace(watcher, should_stop=should_stop))
    except InputError as error:
        return JobResult(job, "refused", " ".join(str(error).split()), time.monotonic() - began)
    shutil.rmtree(here, ignore_errors=True)
    return result


def _run_job(job: Job, here: Path, out: Location, command: str, device: str, watcher: Watcher) -> JobResult:
    """In the folder `here`; what is adopted is found at `out`."""
    began = time.monotonic()
    if _is_done(job, here):
        return JobResult(job, "skipped")
    try:
        sweep_parts(made_file(job, here).parent)
        result = _train(job, here, out, device, watcher)
        if result.failed:
            return JobResult(job, "failed", "; ".join(result.failed), time.monotonic() - began)
        if result.diverged:
            return JobResult(job, "failed", f"{', '.join(result.diverged)} diverged", time.monotonic() - began)
        if not result.is_complete:
            return JobResult(job, "stopped", "goes on where it stopped", time.monotonic() - began)
        with own_run(result.folder, "score") as lock:
            _score(job, here, result, device, lock)
            lock.save("done")
        made = {
            "command": command, "config": result.config.digest(), "hardware": hardware(resolve_device(device)),
            "minutes": f"{_seconds(job, here) / 60:.1f}",
        }  # fmt: skip
        write_whole(made_file(job, here), json.dumps(made, indent=2).encode())
    except InputError as error:
        message = " ".join(str(error).split())
        with contextlib.suppress(InputError, TakenOver):  # no space for the journal either
            _write_refusal(RunFolder(here / "runs" / job.name), message)
        return JobResult(job, "refused", message, time.monotonic() - began)
    return JobResult(job, "done", "", time.monotonic() - began)


def _write_refusal(folder: RunFolder, message: str) -> None:
    """Write to the run's journal why its job was refused, unless it says so already."""
    if not any(entry.state == "failed" for entry in read_journal(folder)[-1:]):
        lock = RunLock(folder)
        lock.take()
        lock.save("failed", message)


def _seconds(job: Job, out: Path) -> float:
    """How long a job has taken, over all processes that worked on it."""
    seconds = total_seconds(entry.session for entry in read_journal(RunFolder(out / "runs" / job.name)))
    with contextlib.suppress(OSError, KeyError, TypeError, ValueError):
        seconds += float(json.loads(made_file(job, out).with_name(OLD_TIME).read_text())["seconds"])
    return seconds


def _is_done(job: Job, out: Path) -> bool:
    return all(file.exists() for file in (*score_files(job, out), made_file(job, out)))


def score_files(job: Job, out: Path) -> list[Path]:
    """Where a job's rows are kept: the curve first, then each scoring."""
    names = [CURVE, *(scoring.name for scoring in job.scorings)]
    return [out / "scores" / job.name / f"{name}.csv" for name in names]


def made_file(job: Job, out: Path) -> Path:
    """What made a job's rows."""
    return out / "scores" / job.name / "made.json"


def _train(job: Job, here: Path, out: Location, device: str, watcher: Watcher) -> RunResult:
    watch: dict[str, Any] = {field.name: getattr(watcher, field.name) for field in dataclasses.fields(watcher)}
    adopted = [join(out, "runs", name) for name in job.adopt]
    where: dict[str, Any] = {"run": here / "runs" / job.name, "resume": True, "take_over": True, "adopt": adopted}
    return train(job.env, job.algo, job.preset, device=device, processes="auto", **where, **watch, **job.settings)


def _score(job: Job, out: Path, result: RunResult, device: str, lock: RunLock) -> None:
    curve, *others = score_files(job, out)
    folder = result.folder
    _keep(curve, job, [row for _, row in curve_rows(folder, commit())])
    for scoring, file in zip(job.scorings, others, strict=True):
        if not file.exists():
            splits = SPLITS if result.config.has_unseen_levels else SPLITS[:1]
            rows = [row for split in splits for row in _play(folder, job, scoring, split, device)]
            lock.check()
            _keep(file, job, rows)


def _play(folder: RunFolder, job: Job, scoring: Scoring, split: Split, device: str) -> list[Score]:
    seed = int(scoring.consensus.get("leader", 0))
    request = EvaluationRequest(
        split, None, job.episodes, seed, scoring.learner, device=device, consensus=scoring.consensus
    )
    return played_rows(folder, request)


def played_rows(folder: RunFolder, request: EvaluationRequest) -> list[Score]:
    """Each agent asked for, and what it explored where that is its trade."""
    rows = []
    for scored in score_run(folder, request):
        rows.append(scored.score)
        if scored.exploration is not None:
            rows += explored_rows(scored.score, scored.exploration)
    return rows


def explored_rows(score: Score, exploration: Exploration) -> list[Score]:
    """What an explorer found, as score rows whose agent says what is measured instead of the return."""
    found: dict[str, Mean | None] = {
        "intrinsic": exploration.intrinsic_return,
        "oracle": exploration.oracle_share,
        "success": exploration.oracle_success,
    }
    return [
        dataclasses.replace(
            score, mean_return=mean.value, ci_low=mean.ci_low, ci_high=mean.ci_high, std_return=float("nan"),
            agent=f"{score.agent} measure={measure}",
        )
        for measure, mean in found.items()
        if mean is not None
    ]  # fmt: skip


def _keep(file: Path, job: Job, rows: list[Score]) -> None:
    text = io.StringIO()
    write_rows(text, [dataclasses.replace(row, agent=f"{row.agent} {job.label}".strip()) for row in rows])
    write_whole(file, text.getvalue().encode())
