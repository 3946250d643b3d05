"""run_job: train a job's run or compose its agent, score it, write its rows. What is done is not done again."""

import contextlib
import json
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from expgen.agents.description import AgentDescription
from expgen.errors import InputError, TakenOver
from expgen.evaluation.scores import FILE as SCORES
from expgen.evaluation.scores import SPLITS, Score, Split
from expgen.exploration.rows import EXPLORATION_FILE, exploration_row
from expgen.exploration.rows import FILE as EXPLORATION
from expgen.files import sweep_parts, write_whole
from expgen.provenance import commit
from expgen.reproduce.job import Job, JobResult, Scoring
from expgen.runs.agent_files import read_agent, union, write_agent
from expgen.runs.config import TrainConfig
from expgen.runs.curves import curve_rows
from expgen.runs.folder import RunFolder
from expgen.runs.journal import read_journal
from expgen.runs.make_config import make_config, make_consensus
from expgen.runs.open_run import RunRequest
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.run_lock import RunLock, own_run
from expgen.runs.scoring import ScoredAgent
from expgen.runs.train import RunResult, train_together
from expgen.storage.location import Location, is_url, join
from expgen.storage.scratch import scratch_folder
from expgen.storage.view import fetch
from expgen.storage.workspace import workspace
from expgen.training.life import Watcher
from expgen.training.resources import hardware, resolve_device
from expgen.training.sessions import total_seconds

CURVE = "curve"  # the file of scores taken while training


def run_job(job: Job, out: Location, command: str, device: str = "auto", watcher: Watcher | None = None) -> JobResult:
    """Train or compose, then score; bad input and failures are told in the result, so that other jobs go on."""
    watcher = watcher or Watcher()
    if not is_url(out):
        return _run_job(job, Path(out), command, device, watcher)
    began = time.monotonic()
    here = scratch_folder()
    try:
        with workspace(str(join(out, "scores", job.name)), made_file(job, here).parent) as rows:
            if _is_done(job, here):
                return JobResult(job, "skipped")
            with workspace(str(join(out, "runs", job.name)), here / "runs" / job.name) as run:
                for name in job.after:
                    fetch(str(join(out, "runs", name)), here / "runs" / name)
                should_stop = run.stop_when_taken_over(rows.stop_when_taken_over(watcher.should_stop))
                result = _run_job(job, here, command, device, replace(watcher, should_stop=should_stop))
    except InputError as error:
        return JobResult(job, "refused", " ".join(str(error).split()), time.monotonic() - began)
    shutil.rmtree(here, ignore_errors=True)
    return result


def _run_job(job: Job, here: Path, command: str, device: str, watcher: Watcher) -> JobResult:
    """In the folder `here`, which has the runs that the job needs."""
    began = time.monotonic()
    if _is_done(job, here):
        return JobResult(job, "skipped")
    try:
        sweep_parts(made_file(job, here).parent)
        config = make_config(job.env, job.algo, job.preset, **job.settings)
        curve: list[Score] = []
        if job.made_of:
            agent = compose(job, config, here / "runs")
        else:
            result = _train(job, here, device, watcher)
            if result.failed:
                return JobResult(job, "failed", "; ".join(result.failed), time.monotonic() - began)
            if result.diverged:
                return JobResult(job, "failed", f"{', '.join(result.diverged)} diverged", time.monotonic() - began)
            if not result.is_complete:
                return JobResult(job, "stopped", "continues where it stopped", time.monotonic() - began)
            agent, curve = read_agent(result.folder.path), [row for _, row in curve_rows(result.folder, commit())]
        with own_run(RunFolder(here / "runs" / job.name), "score") as lock:  # a composed agent's has a journal alone
            _score(job, here, agent, curve, device, lock)
            lock.save("done")
        made = {
            "command": command, "config": config.digest(), "hardware": hardware(resolve_device(device)),
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


def _seconds(job: Job, out: Path) -> float:
    """How long a job has taken, over all processes that worked on it."""
    return total_seconds(entry.session for entry in read_journal(RunFolder(out / "runs" / job.name)))


def _is_done(job: Job, out: Path) -> bool:
    return all(file.exists() for file in (*score_files(job, out), made_file(job, out)))


def score_files(job: Job, out: Path) -> list[Path]:
    """Where a job's rows are kept: the curve first, then each scoring."""
    names = [CURVE, *(scoring.name for scoring in job.scorings)]
    return [out / "scores" / job.name / f"{name}.csv" for name in names]


def made_file(job: Job, out: Path) -> Path:
    """What made a job's rows."""
    return out / "scores" / job.name / "made.json"


def _train(job: Job, here: Path, device: str, watcher: Watcher) -> RunResult:
    run = RunFolder(here / "runs" / job.name)
    if job.continues and not run.exists():
        before = RunFolder(here / "runs" / job.continues)
        config = before.read_config()
        shutil.copytree(before.path / "checkpoints", run.path / "checkpoints", dirs_exist_ok=True)
        run.write_config(*config)  # last: a copy that was cut short is made again
    request = RunRequest(job.env, job.algo, job.preset, run.path, resume=True, take_over=True, settings=job.settings)
    return train_together([request], device, "auto", watcher=watcher)[0]


def _score(job: Job, out: Path, agent: AgentDescription, curve: Sequence[Score], device: str, lock: RunLock) -> None:
    curve_file, *others = score_files(job, out)
    _keep_rows(curve_file, [_labelled(row, job) for row in curve])
    for scoring, file in zip(job.scorings, others, strict=True):
        if not file.exists():
            splits = SPLITS if agent.has_unseen_levels else SPLITS[:1]
            scored = [one for split in splits for one in _play(agent, job, scoring, split, device)]
            lock.check()
            _keep(file, job, scored)


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
    write_whole(file, SCORES.text(list(rows)).encode())


def _labelled(row: Score, job: Job) -> Score:
    """`row` with what sets the job's agents apart from others of the same name."""
    return replace(row, settings=f"{row.settings} {job.label}".strip())
