"""run_job: train a job's run or compose its agent, score it, write its rows. What is done is not done again."""

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
from expgen.evaluation.scores import SPLITS, Score, TableFile
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
CURVE = "curve"  # the file of scores taken while training
MADE = "made.json"  # what made a job's rows


def run_job(job: Job, out: Location, command: str, device: str = "auto", watcher: Watcher | None = None) -> JobResult:
    """Train or compose, then score; bad input and failures are told in the result, so that other jobs go on.

    `out` is the reproduction's folder or URL, `command` what its rows say they were made by.
    """
    began = time.monotonic()
    try:
        with _local_folder(job, out, watcher or Watcher()) as (here, local_watcher):
            try:
                status, message = _run_job(job, here, command, device, local_watcher)
            except InputError as error:
                with contextlib.suppress(InputError, TakenOver):  # no space for the journal either
                    _write_refusal(RunFolder(here / RUNS / job.name), " ".join(str(error).split()))
                raise
    except InputError as error:
        status, message = "refused", " ".join(str(error).split())
    return JobResult(job, status, message, time.monotonic() - began)


@contextlib.contextmanager
def _local_folder(job: Job, out: Location, watcher: Watcher) -> Iterator[tuple[Path, Watcher]]:
    """A folder that has the runs and rows that the job needs; at a URL they are downloaded, and its own uploaded."""
    if not is_url(out):
        yield Path(out), watcher
        return
    here = scratch_folder()
    with contextlib.ExitStack() as spaces:
        owned = [spaces.enter_context(workspace(str(join(out, SCORES, job.name)), here / SCORES / job.name))]
        if not _is_done(job, here):
            owned.append(spaces.enter_context(workspace(str(join(out, RUNS, job.name)), here / RUNS / job.name)))
            for name in job.after:
                fetch(str(join(out, RUNS, name)), here / RUNS / name)
        for space in owned:
            watcher = replace(watcher, should_stop=space.stop_when_taken_over(watcher.should_stop))
        yield here, watcher
    shutil.rmtree(here, ignore_errors=True)


def _run_job(job: Job, here: Path, command: str, device: str, watcher: Watcher) -> tuple[Status, str]:
    """What becomes of the job, in the folder `here`, and why."""
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
    with own_run(run, "score") as lock:  # a composed agent's has a journal alone
        curve_file, *files = score_files(job, here)
        _keep(scores.FILE, curve_file, job, curve)
        for scoring, file in zip(job.scorings, files, strict=True):
            if not file.exists():
                scored = _score(job, agent, scoring, device)
                lock.check()
                found = ((one.score, one.exploration) for one in scored)
                explored = [exploration.exploration_row(score, more) for score, more in found if more is not None]
                if explored:  # first, for the scores say that all is there
                    _keep(exploration.FILE, explored_file(file), job, explored)
                _keep(scores.FILE, file, job, [one.score for one in scored])
        lock.save("done")
    made = {
        "command": command, "config": config.digest(), "hardware": hardware(resolve_device(device)),
        "minutes": f"{total_seconds(entry.session for entry in read_journal(run)) / 60:.1f}",
    }  # fmt: skip
    write_atomic(made_file(job, here), json.dumps(made, indent=2).encode())
    return "done", ""


def _write_refusal(folder: RunFolder, message: str) -> None:
    """Write to the run's journal why its job was refused, unless it says so already."""
    if not any(entry.state == "failed" for entry in read_journal(folder)[-1:]):
        lock = RunLock(folder)
        lock.take()
        lock.save("failed", message)


def compose(job: Job, config: TrainConfig, runs: Path) -> AgentDescription:
    """The agent whose members and explorer other jobs have trained; it is kept in `runs` as JOB.json."""
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
        run.write_config(*config)  # last: a copy that was cut short is made again
    request = RunRequest(job.env, job.algo, job.preset, run.path, resume=True, take_over=True, settings=job.settings)
    return train_runs([request], device, "auto", watcher=watcher)[0]


def _score(job: Job, agent: AgentDescription, scoring: Scoring, device: str) -> list[ScoredAgent]:
    """On both splits, or on the training levels where there are no others."""
    asked = EvaluationRequest(
        episodes=job.episodes, seed=int(scoring.consensus.get("leader", 0)), learner=scoring.learner, device=device,
        consensus=scoring.consensus,
    )  # fmt: skip
    splits = SPLITS if agent.has_unseen_levels else SPLITS[:1]
    return [one for split in splits for one in score_all(agent, replace(asked, split=split))]


def _keep(kind: TableFile, file: Path, job: Job, rows: Iterable[Any]) -> None:
    """Write `rows`, each with what sets the job's agents apart from others of the name."""
    labelled = [replace(row, settings=f"{row.settings} {job.label}".strip()) for row in rows]
    write_atomic(file, kind.text(labelled).encode())


def _is_done(job: Job, out: Path) -> bool:
    return all(file.exists() for file in (*score_files(job, out), made_file(job, out)))


def score_files(job: Job, out: Path) -> list[Path]:
    """Where a job's rows are kept: the curve first, then each scoring."""
    names = [CURVE, *(scoring.name for scoring in job.scorings)]
    return [out / SCORES / job.name / f"{name}.csv" for name in names]


def made_file(job: Job, out: Path) -> Path:
    """What made a job's rows."""
    return out / SCORES / job.name / MADE


def explored_file(file: Path) -> Path:
    """Where what was explored is kept of a scoring whose rows are in `file`."""
    return file.with_name(f"{file.stem}-{exploration.EXPLORATION_FILE}")
