"""Runs whose learners train in several worker processes on one device: this process supervises and writes.

Training workers build their share of the learners and train them; a scoring worker plays what they leave to be scored.
A worker that dies takes nobody along: it is started again from its learners' checkpoints; where that does not help,
each of them gets a process of its own, and only the one that dies again is given up.
"""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

from expgen.agents.consensus import ConsensusConfig
from expgen.envs.vec_env import EnvSpec
from expgen.fast.mps import cuda_mps
from expgen.fast.processes import END_SECONDS, Done, Failed, Refused, Work, Worker
from expgen.plugins import check_known_elsewhere
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.journal import State
from expgen.runs.messages import Assignment, Built, Ended, LearnerId, NotScored, Row, Saved, Scored, ScoreRequest, Start
from expgen.runs.plan import LearnerPlan, cost_of, spread
from expgen.runs.result import RunResult
from expgen.runs.run_lock import own_run
from expgen.runs.scoring_worker import score_requested
from expgen.runs.to_score import stored_steps
from expgen.runs.training_worker import train_assigned
from expgen.runs.writer import RunWriter
from expgen.text import printable
from expgen.training.callbacks import Callbacks
from expgen.training.life import Watcher
from expgen.training.resources import cores_here, resolve_device

DEATHS = 3  # of a worker in a row, without progress, after which it is given up
POLL_SECONDS = 0.2  # between two looks at whether to stop


class PlannedRun(NamedTuple):
    """A run that may begin."""

    name: str  # by which several at once are told apart
    folder: RunFolder
    config: TrainConfig
    plans: list[LearnerPlan]
    consensus: ConsensusConfig | None  # how its agent votes, where it has an ensemble
    num_unfinished: int  # learners with steps left
    callbacks: Callbacks  # that hear of it


def run_in_processes(
    runs: Sequence[PlannedRun], device: str, num_workers: int, watcher: Watcher, hang_seconds: float = 0.0
) -> list[RunResult]:
    """Train all learners of `runs` on `device` in `num_workers` processes; `hang_seconds` is that of `train`.

    This process never uses the device itself.
    """
    for run in runs:
        names = {"--env": run.config.env, "--algo": run.config.algo, "--encoder": run.config.network.encoder}
        check_known_elsewhere(names)
    with contextlib.ExitStack() as cleanup:
        chosen = resolve_device(device)
        variables: dict[str, str] = {}
        permits = None  # on the CPU each worker has cores of its own
        if chosen.type == "cuda":
            variables = cleanup.enter_context(cuda_mps())
            permits = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="expgen-permits-")))
        crew = _Crew(runs, str(chosen), num_workers, variables, permits, watcher.should_stop, hang_seconds)
        cleanup.callback(crew.close)
        crew.build()
        for run in runs:
            lock = cleanup.enter_context(own_run(run.folder))
            prefix = f"{run.name}/" if len(runs) > 1 else ""
            cleanup.callback(run.callbacks.on_end, "failed")  # unless it has ended otherwise
            told = (lock, run.callbacks, watcher.on_row, prefix)
            writer = RunWriter(run.folder, run.config, run.plans, run.consensus, *told)
            crew.writers[run.folder.path] = writer
        cleanup.callback(crew.close)  # an error ends the workers before the journal says that it has failed
        crew.start(watcher.on_start)
        crew.train()
        crew.close()
        return [crew.conclude(run) for run in runs]


@dataclass
class _Job:
    """What a worker process was started for, and how often it has died since it last got on."""

    name: str
    worker: Worker
    learners: list[LearnerId] = field(default_factory=list)  # in training; none: it scores
    progress: object = None  # what it had come to when it was last started
    deaths: int = 0
    has_built: bool = False


class _Crew:
    """All workers of one command."""

    def __init__(
        self,
        runs: Sequence[PlannedRun],
        device: str,
        num_workers: int,
        variables: dict[str, str],
        permits: Path | None,
        should_stop: Callable[[], bool],
        hang_seconds: float,
    ) -> None:
        self.device, self.variables, self.permits, self.should_stop = device, variables, permits, should_stop
        self.hang_seconds = hang_seconds
        self.cores = max(1, cores_here() // num_workers)
        self.runs = {run.folder.path: run for run in runs}
        self.writers: dict[Path, RunWriter] = {}
        self.specs: dict[Path, EnvSpec] = {}
        self.to_score: dict[ScoreRequest, None] = {}  # in the order of their requests
        self.num_scored = 0
        self.diverged: list[LearnerId] = []
        self.failed: dict[Path, list[str]] = {run.folder.path: [] for run in runs}
        self.is_stopping = False
        self.scoring: _Job | None = None
        self.leaving: list[Worker] = []  # done, and not waited for while others want answers
        costs = {
            LearnerId(run.folder.path, plan.name): cost_of(plan, stored_steps(run.folder, plan.name))
            for run in runs
            for plan in run.plans
        }
        self.training: list[_Job] = []
        for number, learners in enumerate(spread(costs, num_workers)):
            worker = self._start(self._training_of(learners))
            self.training.append(_Job(f"worker {number}", worker, learners, self._stored(learners)))

    def build(self) -> None:
        """Wait until every worker has built its learners, so that bad input is refused before anything is written."""
        while any(not job.has_built for job in self.training):
            self._turn()
        for run, reasons in self.failed.items():
            if run not in self.specs:
                raise RuntimeError("; ".join(reasons) or f"no worker could build the learners of {run}")

    def start(self, on_start: Callable[[int, dict[str, int]], None]) -> None:
        """Let the learners go on from their checkpoints."""
        for run, writer in self.writers.items():
            writer.open(self.specs[run])
        starts = [(job.worker, self._start_of(job)) for job in self.training]
        done = {
            writer.prefix + name: steps for writer in self.writers.values() for name, steps in writer.env_steps.items()
        }
        total = sum(plan.steps for writer in self.writers.values() for plan in writer.plans.values())
        on_start(total, done)
        for writer in self.writers.values():
            for request in writer.left_to_score():
                self._request(request)
        for worker, start in starts:
            worker.send(start)

    def train(self) -> None:
        """Until every learner has ended and been scored; when told to stop, scores are left for the next time."""
        while self.training or (self.to_score and not self.is_stopping):
            self._turn()
        for run, writer in self.writers.items():
            if writer.is_complete and writer.consensus is not None and not self.is_stopping:
                self._request(ScoreRequest(run, None, 0, None))
        while self.to_score and not self.is_stopping:
            self._turn()

    def conclude(self, run: PlannedRun) -> RunResult:
        """Write to the journal how a run has ended."""
        path = run.folder.path
        writer = self.writers[path]
        diverged = tuple(name for folder, name in self.diverged if folder == path)
        failed = tuple(self.failed[path])
        is_complete = writer.is_complete and not failed and not any(request.run == path for request in self.to_score)
        state: State = "failed" if failed else "diverged" if diverged else "done" if is_complete else "stopped"
        writer.close(state)
        writer.lock.save(state, "; ".join(failed) or ", ".join(diverged))
        return RunResult(run.folder, run.config, diverged, is_complete, failed)

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        for job in (*self.training, *([self.scoring] if self.scoring else [])):
            job.worker.close()
        for worker in self.leaving:
            worker.close(END_SECONDS)
        self.training, self.scoring, self.leaving = [], None, []

    def _turn(self) -> None:
        """Take in what the workers say, for a moment."""
        self.is_stopping = self.is_stopping or self.should_stop()
        jobs = {job.worker.connection: job for job in (*self.training, *([self.scoring] if self.scoring else []))}
        for connection in wait(list(jobs), POLL_SECONDS):
            self._take_in(jobs[connection], jobs[connection].worker.receive())  # type: ignore[index]

    def _take_in(self, job: _Job, message: object) -> None:
        match message:
            case Built(specs):
                self.specs |= specs
                job.has_built = True
                if self.writers:  # a worker that was started again
                    job.worker.send(self._start_of(job))
            case Row(learner, row):
                if request := self.writers[learner.run].row(learner.name, row):
                    self._request(request)
                job.worker.send(self.is_stopping)
            case Saved(learner, env_steps):
                self.writers[learner.run].saved(learner.name, env_steps)
            case Ended(learner, env_steps, has_diverged, error, trace):
                job.learners.remove(learner)
                if error:
                    self._fail(learner.run, learner.name, error, trace)
                elif has_diverged:
                    self.diverged.append(learner)
                else:
                    self.writers[learner.run].env_steps[learner.name] = env_steps
            case Scored(request, scores):
                self.to_score.pop(request, None)
                self.num_scored += 1
                self.writers[request.run].scored(request, scores)
            case NotScored(request, error, trace):
                self.to_score.pop(request, None)
                self.num_scored += 1
                self._fail(request.run, f"scoring {request.learner or 'the ensemble'}", error, trace)
            case Done():
                self.leaving.append(job.worker)
                self.training.remove(job)
            case Refused(error):
                raise error
            case Failed(line, trace):
                for run in dict.fromkeys(learner.run for learner in job.learners) or self.writers:
                    self._log(run, job.name, trace)
                self._lost(job, line)
            case None:
                self._lost(job, job.worker.how_it_died())

    def _lost(self, job: _Job, why: str) -> None:
        """Start a worker again that has died, unless that has not helped before or the run is ending."""
        job.worker.close()
        if job is not self.scoring and not job.learners:  # it died on its way out
            self.training.remove(job)
            return
        progress = self.num_scored if job is self.scoring else self._stored(job.learners)
        job.deaths = job.deaths + 1 if progress == job.progress else 1
        job.progress = progress
        if not self.is_stopping and job.deaths < DEATHS:
            print(f"expgen: {job.name} died ({why}); it is started again", file=sys.stderr, flush=True)
            if not job.has_built:
                self.variables = {}  # what it died of may be MPS
            job.has_built = job is self.scoring
            if job is self.scoring:
                job.worker = self._start(self._scoring())
                for request in self.to_score:
                    job.worker.send(request)
            else:
                job.worker = self._start(self._training_of(job.learners))
            return
        self._give_up(job, why)

    def _give_up(self, job: _Job, why: str) -> None:
        """Go on without it; what it leaves undone stays for a resumed run."""
        if len(job.learners) > 1 and not self.is_stopping:
            self._split(job, why)
            return
        if job is self.scoring:
            self.scoring = None
            undone = dict.fromkeys((request.run for request in self.to_score), "scoring")
            self.to_score = {}
        else:
            self.training.remove(job)
            runs = dict.fromkeys(learner.run for learner in job.learners)
            undone = {run: ", ".join(name for of, name in job.learners if of == run) for run in runs}
        if self.is_stopping:
            return
        for run, what in undone.items():
            self.failed[run].append(f"{what}: {why}")
            print(f"expgen: {what} given up: its process died {DEATHS} times ({why})", file=sys.stderr, flush=True)

    def _split(self, job: _Job, why: str) -> None:
        """One of its learners may be what a worker dies of: each gets one more try in a process of its own."""
        line = f"expgen: {job.name} died {DEATHS} times ({why}); each of its learners gets a process of its own"
        print(line, file=sys.stderr, flush=True)
        self.training.remove(job)
        for learner in job.learners:
            worker = self._start(self._training_of([learner]))
            alone = _Job(f"the worker of {learner.name}", worker, [learner], self._stored([learner]), DEATHS - 1)
            self.training.append(alone)

    def _fail(self, run: Path, what: str, error: str, trace: str) -> None:
        """`what` of a run failed by itself, and its neighbours go on."""
        self.failed[run].append(f"{what}: {error}")
        self._log(run, what, trace)
        print(f"expgen: {what} failed: {printable(error)}", file=sys.stderr, flush=True)

    def _start(self, work: Work) -> Worker:
        return Worker(work, self.variables)

    def _training_of(self, learners: Sequence[LearnerId]) -> Work:
        assignments = [
            Assignment(run, planned.config, tuple(name for of, name in learners if of == run))
            for run, planned in self.runs.items()
            if any(of == run for of, _ in learners)
        ]
        return partial(train_assigned, assignments, self.device, self.cores, self.permits, self.hang_seconds)

    def _scoring(self) -> Work:
        owners = {run: writer.lock.owner for run, writer in self.writers.items()}
        return partial(score_requested, owners, self.device, self.cores, self.hang_seconds)

    def _request(self, request: ScoreRequest) -> None:
        """Have a policy played; the first one starts the worker that does."""
        self.to_score[request] = None
        if self.scoring is None:
            self.scoring = _Job("scoring worker", self._start(self._scoring()), [], self.num_scored, has_built=True)
        self.scoring.worker.send(request)

    def _start_of(self, job: _Job) -> Start:
        for learner in job.learners:
            self.writers[learner.run].begin(learner.name, stored_steps(self.runs[learner.run].folder, learner.name))
        return Start(self.is_stopping)

    def _log(self, run: Path, what: str, trace: str) -> None:
        """Keep where something failed, for whoever looks for the reason."""
        if run in self.writers:
            self.runs[run].folder.log_failure(what, trace)

    def _stored(self, learners: Sequence[LearnerId]) -> list[int]:
        """By which one sees that a worker gets on."""
        return [stored_steps(self.runs[run].folder, name) for run, name in learners]
