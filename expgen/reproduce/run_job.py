"""run_job: train the run of a job or compose its agent, evaluate it, write its rows; skip steps that are done."""

import contextlib
import json
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from expgen.agents.description import AgentDescription
from expgen.errors import InputError, TakenOver
from expgen.evaluation import scores
from expgen.evaluation.scores import Score, TableFile
from expgen.exploration import rows as exploration
from expgen.files import delete_partial_files, write_atomic
from expgen.provenance import commit
from expgen.reproduce.job import Job, JobResult, Scoring, Status
from expgen.runs.agent_files import read_agent, union, write_agent
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal
from expgen.runs.make_config import RunRequest, make_config, make_consensus
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.result import curve_rows
from expgen.runs.run_lock import RunLock, own_run
from expgen.runs.scoring import ScoredAgent
from expgen.runs.train import RunResult, train_runs
from expgen.storage.location import Location, is_url, join
from expgen.storage.scratch import scratch_folder
from expgen.storage.view import fetch
from expgen.storage.workspace import workspace
from expgen.training.loop import Watcher
from expgen.training.resources import hardware, resolve_device
from expgen.training.sessions import total_seconds

RUNS, SCORES = "runs", "scores"  # folders of a reproduction
CURVE = "curve"  # file of the evaluations during training
MADE = "made.json"  # provenance of a job's rows


def run_job(job: Job, out: Location, command: str, device: str = "auto", watcher: Watcher | None = None) -> JobResult:
    """Run one job. Bad input and failures are reported in the result, so that other jobs continue.

    out: folder or URL of the reproduction.
    command: recorded as the provenance of the rows.
    """
    began = time.monotonic()
    try:
        with _local_folder(job, out, watcher or Watcher()) as (here, local_watcher):
            try:
                status, message = _run_job(job, here, command, device, local_watcher)
            except InputError as error:
                with contextlib.suppress(InputError, TakenOver):  # the disk may be full
                    _write_refusal(RunFolder(here / RUNS / job.name), " ".join(str(error).split()))
                raise
    except InputError as error:
        status, message = "refused", " ".join(str(error).split())
    return JobResult(job, status, message, time.monotonic() - began)


@contextlib.contextmanager
def _local_folder(job: Job, out: Location, watcher: Watcher) -> Iterator[tuple[Path, Watcher]]:
    """Yield a folder with the runs and rows that the job needs; for a URL, download them and upload the job's own."""
    if not is_url(out):
        yield Path(out), watcher
        return
    here = scratch_folder()
    with contextlib.ExitStack() as stack:
        spaces = [stack.enter_context(workspace(str(join(out, SCORES, job.name)), here / SCORES / job.name))]
        if not _is_done(job, here):
            spaces.append(stack.enter_context(workspace(str(join(out, RUNS, job.name)), here / RUNS / job.name)))
            for name in job.after:
                fetch(str(join(out, RUNS, name)), here / RUNS / name)
        for space in spaces:
            watcher = replace(watcher, should_stop=space.stop_when_taken_over(watcher.should_stop))
        yield here, watcher
    shutil.rmtree(here, ignore_errors=True)


def _run_job(job: Job, here: Path, command: str, device: str, watcher: Watcher) -> tuple[Status, str]:
    """Run the job in the folder `here`; return its status and a message."""
    if _is_done(job, here):
        return "skipped", ""
    delete_partial_files(made_file(job, here).parent)
    config = make_config(job.env, job.algo, job.preset, **job.settings)
    curve: list[Score] = []
    if job.made_of:
        agent = compose(job, config, here / RUNS)
    else:
        result = _train(job, here, device, watcher)
        if result.failed:
            return "failed", "; ".join(result.failed)
        if result.diverged:
            return "failed", f"{', '.join(result.diverged)} diverged"
        if not result.is_complete:
            return "stopped", "continues where it stopped"
        agent, curve = read_agent(result.folder.path), [row for _, row in curve_rows(result.folder, commit())]
    run = RunFolder(here / RUNS / job.name)
    with own_run(run, "score") as lock:  # for a composed agent, a folder with a journal only
        curve_file, *files = score_files(job, here)
        _write_rows(scores.FILE, curve_file, job, curve)
        for scoring, file in zip(job.scorings, files, strict=True):
            if not file.exists():
                scored = _score(job, agent, scoring, device)
                lock.check()
                found = ((one.score, one.exploration) for one in scored)
                explored = [exploration.exploration_row(score, more) for score, more in found if more is not None]
                if explored:  # before the scores, whose file marks the scoring as done
                    _write_rows(exploration.FILE, explored_file(file), job, explored)
                _write_rows(scores.FILE, file, job, [one.score for one in scored])
        lock.save("done")
    made = {
        "command": command, "config": config.digest(), "hardware": hardware(resolve_device(device)),
        "minutes": f"{total_seconds(entry.session for entry in read_journal(run)) / 60:.1f}",
    }  # fmt: skip
    write_atomic(made_file(job, here), json.dumps(made, indent=2).encode())
    return "done", ""


def _write_refusal(folder: RunFolder, message: str) -> None:
    """Write an error to the run's journal, unless its last entry has failed already."""
    entries = read_journal(folder)
    if not entries or entries[-1].state != "failed":
        lock = RunLock(folder)
        lock.take()
        lock.save("failed", message)


def compose(job: Job, config: TrainConfig, runs: Path) -> AgentDescription:
    """Write and return the agent JOB.json in `runs`, whose members and explorer other jobs have trained."""
    parts = [read_agent(runs / name) for name in job.made_of]
    *members, explorer = (
        replace(policy, path=f"{name}/{policy.path}")
        for name, part in zip(job.made_of, parts, strict=True)
        for policy in part.members
    )
    agent = replace(
        parts[0],
        folder=runs,
        algo=job.algo,
        levels=union([part.levels for part in parts]),
        members=tuple(members),
        explorers=(explorer,),
        consensus=make_consensus(config, job.preset),
    )
    write_agent(agent, runs / f"{job.name}.json")
    return agent


def _train(job: Job, here: Path, device: str, watcher: Watcher) -> RunResult:
    run = RunFolder(here / RUNS / job.name)
    if job.continues and not run.exists():
        before = RunFolder(here / RUNS / job.continues)
        config = before.read_config()
        shutil.copytree(before.path / "checkpoints", run.path / "checkpoints", dirs_exist_ok=True)
        run.write_config(*config)  # last: an incomplete copy is made again
    request = RunRequest(job.env, job.algo, job.preset, run.path, resume=True, take_over=True, settings=job.settings)
    return train_runs([request], device, "auto", watcher=watcher)[0]


def _score(job: Job, agent: AgentDescription, scoring: Scoring, device: str) -> list[ScoredAgent]:
    """Evaluate on both splits, or on the training levels only if there are no unseen ones."""
    request = EvaluationRequest(
        episodes=job.episodes, seed=int(scoring.consensus.get("leader", 0)), learner=scoring.learner, device=device,
        consensus=scoring.consensus,
    )  # fmt: skip
    return [one for split in agent.splits for one in score_all(agent, replace(request, split=split))]


def _write_rows(kind: TableFile, file: Path, job: Job, rows: Iterable[Any]) -> None:
    """Write `rows` with the job's label added to their settings."""
    labelled = [replace(row, settings=f"{row.settings} {job.label}".strip()) for row in rows]
    write_atomic(file, kind.text(labelled).encode())


def _is_done(job: Job, out: Path) -> bool:
    return all(file.exists() for file in (*score_files(job, out), made_file(job, out)))


def score_files(job: Job, out: Path) -> list[Path]:
    """Return the files of a job's rows: the curve first, then each scoring."""
    names = [CURVE, *(scoring.name for scoring in job.scorings)]
    return [out / SCORES / job.name / f"{name}.csv" for name in names]


def made_file(job: Job, out: Path) -> Path:
    """Return the file with the provenance of a job's rows."""
    return out / SCORES / job.name / MADE


def explored_file(file: Path) -> Path:
    """Return the file of the exploration rows that belong to the scores in `file`."""
    return file.with_name(f"{file.stem}-{exploration.EXPLORATION_FILE}")
