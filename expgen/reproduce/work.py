"""run_job: train a job's run or compose its agent, score it, keep its rows. What is done is not done again."""

import contextlib
import dataclasses
import io
import json
import shutil
import time
from collections.abc import Iterable, Sequence
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
from expgen.runs.agent_files import read_agent, union, write_agent
from expgen.runs.config import TrainConfig
from expgen.runs.curves import curve_rows
from expgen.runs.make_config import make_config, make_consensus
from expgen.runs.request import EvaluationRequest, score_all
from expgen.runs.scoring import ScoredAgent
from expgen.runs.train import RunResult, train
from expgen.storage.place import Place, below, is_url
from expgen.storage.scratch import scratch_folder
from expgen.storage.view import fetch
from expgen.storage.workspace import workspace
from expgen.training.checkpoint import sweep_parts, write_whole
from expgen.training.resources import hardware, resolve_device

CURVE = "curve"  # the file of scores taken while training
SPENT = "spent.json"


def run_job(job: Job, out: Place, command: str, device: str = "auto", watcher: Watcher | None = None) -> JobResult:
    """Train or compose, then score; bad input and failures are told in the result, so that other jobs go on."""
    watcher = watcher or Watcher()
    if not is_url(out):
        return _run_job(job, Path(out), command, device, watcher)
    began = time.monotonic()
    here = scratch_folder()
    try:
        with contextlib.ExitStack() as stack:
            rows = stack.enter_context(workspace(str(below(out, "scores", job.name)), made_file(job, here).parent))
            if _is_done(job, here):
                return JobResult(job, "skipped")
            should_stop = rows.stop_when_lost(watcher.should_stop)
            for name in job.made_of:
                fetch(below(out, "runs", name), here / "runs" / name)
            if not job.made_of:
                run = stack.enter_context(workspace(str(below(out, "runs", job.name)), here / "runs" / job.name))
                should_stop = run.stop_when_lost(should_stop)
            result = _run_job(job, here, command, device, replace(watcher, should_stop=should_stop))
    except InputError as error:
        return JobResult(job, "refused", " ".join(str(error).split()), time.monotonic() - began)
    shutil.rmtree(here, ignore_errors=True)
    return result


def _run_job(job: Job, out: Path, command: str, device: str, watcher: Watcher) -> JobResult:
    """In the folder `out`, which has the runs that the job is made of."""
    began = time.monotonic()
    if _is_done(job, out):
        return JobResult(job, "skipped")
    try:
        sweep_parts(made_file(job, out).parent)
        spent = Spent(made_file(job, out).with_name(SPENT))
        config = make_config(job.env, job.algo, job.preset, **job.settings)
        curve: list[Score] = []
        if job.made_of:
            agent = compose(job, config, out / "runs")
        else:
            result = _train(job, out, device, _noting(spent, watcher))
            spent.note()
            if result.failed:
                return JobResult(job, "failed", "; ".join(result.failed), time.monotonic() - began)
            if result.diverged:
                return JobResult(job, "failed", f"{', '.join(result.diverged)} diverged", time.monotonic() - began)
            if not result.is_complete:
                return JobResult(job, "stopped", "goes on where it stopped", time.monotonic() - began)
            agent, curve = read_agent(result.folder.path), [row for _, row in curve_rows(result.folder, commit())]
        _score(job, out, agent, curve, device)
        spent.note()
        made = {
            "command": command, "config": config.digest(), "hardware": hardware(resolve_device(device)),
            "minutes": f"{spent.seconds / 60:.1f}",
        }  # fmt: skip
        write_whole(made_file(job, out), json.dumps(made, indent=2).encode())
    except InputError as error:
        return JobResult(job, "refused", " ".join(str(error).split()), time.monotonic() - began)
    return JobResult(job, "done", "", time.monotonic() - began)


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
        explorer=explorer,
        consensus=make_consensus(config, job.preset),
    )
    write_agent(agent, runs / f"{job.name}.json")
    return agent


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


def _train(job: Job, out: Path, device: str, watcher: Watcher) -> RunResult:
    watch: dict[str, Any] = {field.name: getattr(watcher, field.name) for field in dataclasses.fields(watcher)}
    where: dict[str, Any] = {"run": out / "runs" / job.name, "resume": True, "device": device}
    return train(job.env, job.algo, job.preset, processes="auto", **where, **watch, **job.settings)


def _score(job: Job, out: Path, agent: AgentDescription, curve: Sequence[Score], device: str) -> None:
    curve_file, *others = score_files(job, out)
    _keep_rows(curve_file, [_labelled(row, job) for row in curve])
    for scoring, file in zip(job.scorings, others, strict=True):
        if not file.exists():
            splits = SPLITS if agent.has_unseen_levels else SPLITS[:1]
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
