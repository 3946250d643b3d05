"""Runs whose learners train in several worker processes on one device: this process hears them and writes.

Training workers build their share of the learners and train them; a scoring worker plays what they leave to be scored.
"""

import contextlib
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from expgen.envs.vec_env import EnvSpec
from expgen.fast.mps import cuda_mps
from expgen.fast.processes import Done, Failed, Refused, Work
from expgen.plugins import check_known_elsewhere
from expgen.runs.make_config import OpenedRun
from expgen.runs.messages import Built, Ended, LearnerId, Row, Saved, Scored, ScoreRequest
from expgen.runs.plan import cost_of, spread
from expgen.runs.result import RunResult
from expgen.runs.run_lock import own_run
from expgen.runs.supervise import DEATHS, Job, Learners, Workers, say
from expgen.runs.workers import WorkerSettings, score_requested, train_assigned
from expgen.runs.writer import RunWriter, stored_steps
from expgen.text import printable
from expgen.training.loop import Watcher
from expgen.training.resources import available_cores, resolve_device


def run_in_processes(
    runs: Sequence[OpenedRun], device: str, num_workers: int, watcher: Watcher, hang_seconds: float = 0.0
) -> list[RunResult]:
    """Train all learners of `runs` on `device` in `num_workers` processes; `hang_seconds` is that of `train`.

    This process never uses the device itself.
    """
    for config in (run.config for run in runs):
        check_known_elsewhere({"--env": config.env, "--algo": config.algo, "--encoder": config.network.encoder})
    with contextlib.ExitStack() as cleanup:
        chosen = resolve_device(device)
        variables: dict[str, str] = {}
        permits = None  # on the CPU each worker has cores of its own
        if chosen.type == "cuda":
            variables = cleanup.enter_context(cuda_mps())
            permits = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="expgen-permits-")))
        settings = WorkerSettings(str(chosen), max(1, available_cores() // num_workers), permits, hang_seconds)
        crew = _Crew(runs, settings, variables, watcher)
        cleanup.callback(crew.workers.close)
        crew.build(num_workers)
        for run in runs:
            lock = cleanup.enter_context(own_run(run.folder))
            cleanup.callback(run.callbacks.on_end, "failed")  # unless it has ended otherwise
            prefix = f"{run.name}/" if len(runs) > 1 else ""
            crew.writers[run.folder.path] = RunWriter(run, lock, watcher.on_row, prefix)
        cleanup.callback(crew.workers.close)  # an error ends the workers before the journal says that it has failed
        crew.train()
        crew.workers.close()
        return [crew.conclude(path) for path in crew.writers]


class _Crew:
    """All learners of one command, and what is told of them."""

    def __init__(
        self, runs: Sequence[OpenedRun], settings: WorkerSettings, variables: dict[str, str], watcher: Watcher
    ) -> None:
        """`variables` are what the environment of workers has besides."""
        self.settings, self.watcher = settings, watcher
        self.workers = Workers(self._work_of, self._progress_of, variables)
        self.runs = {run.folder.path: run for run in runs}
        self.plans = {LearnerId(run.folder.path, plan.name): plan for run in runs for plan in run.plans}
        self.writers: dict[Path, RunWriter] = {}
        self.specs: dict[Path, EnvSpec] = {}
        self.to_score: dict[ScoreRequest, None] = {}  # in the order of their requests
        self.num_scored = 0
        self.diverged: list[LearnerId] = []
        self.failed: dict[Path, list[str]] = {path: [] for path in self.runs}
        self.is_stopping = False

    def build(self, num_workers: int) -> None:
        """Wait until every worker has built its learners, so that bad input is refused before anything is written."""
        costs = {who: cost_of(plan, self._steps_of(who)) for who, plan in self.plans.items()}
        for number, learners in enumerate(spread(costs, num_workers)):
            self.workers.start(f"worker {number}", learners)
        while any(not job.has_built for job in self.workers.jobs):
            self._turn()
        for run, reasons in self.failed.items():
            if run not in self.specs:
                raise RuntimeError("; ".join(reasons) or f"no worker could build the learners of {run}")

    def train(self) -> None:
        """Until every learner has ended and been scored; when told to stop, scores are left for the next time."""
        writers = self.writers.values()
        for run, writer in self.writers.items():
            writer.open(self.specs[run])
        training = self.workers.training
        for job in training:
            self._begin(job)
        done = {writer.prefix + name: steps for writer in writers for name, steps in writer.env_steps.items()}
        self.watcher.on_start(sum(plan.steps for plan in self.plans.values()), done)
        for request in [request for writer in writers for request in writer.left_to_score()]:
            self._request(request)
        for job in training:
            job.worker.send(self.is_stopping)
        while self.workers.training or (self.to_score and not self.is_stopping):
            self._turn()
        for run, writer in self.writers.items():
            if writer.is_complete and writer.run.consensus is not None and not self.is_stopping:
                self._request(ScoreRequest(run, None, 0, None))
        while self.to_score and not self.is_stopping:
            self._turn()

    def conclude(self, run: Path) -> RunResult:
        """Write to the journal how a run has ended."""
        diverged = tuple(name for of, name in self.diverged if of == run)
        is_scored = not any(request.run == run for request in self.to_score)
        return self.writers[run].conclude(diverged, tuple(self.failed[run]), is_scored)

    def _turn(self) -> None:
        """Take in what the workers say, for a moment."""
        self.is_stopping = self.is_stopping or self.watcher.should_stop()
        for job, message in self.workers.messages():
            self._take_in(job, message)

    def _take_in(self, job: Job, message: object) -> None:
        match message:
            case Built(specs):
                self.specs |= specs
                job.has_built = True
                if self.writers:  # a worker that was started again
                    self._begin(job)
                    job.worker.send(self.is_stopping)
            case Row(learner, row):
                if request := self.writers[learner.run].row(learner.name, row):
                    self._request(request)
                job.worker.send(self.is_stopping)
            case Saved(learner, env_steps):
                self.writers[learner.run].saved(learner.name, env_steps)
            case Ended(learner, env_steps, has_diverged, error, trace):
                assert job.learners is not None
                job.learners.remove(learner)
                if error:
                    self._fail(learner.run, learner.name, error, trace)
                elif has_diverged:
                    self.diverged.append(learner)
                else:
                    self.writers[learner.run].env_steps[learner.name] = env_steps
            case Scored(request, scores, error, trace):
                self.to_score.pop(request, None)
                self.num_scored += 1
                if error:
                    self._fail(request.run, f"scoring {request.learner or 'the ensemble'}", error, trace)
                else:
                    self.writers[request.run].scored(request, scores)
            case Done():
                self.workers.leave(job)
            case Refused(error):
                raise error
            case Failed(line, trace):
                for run in {learner.run for learner in job.learners or ()} or self.writers:
                    if run in self.writers:
                        self.runs[run].folder.log_failure(job.name, trace)
                self._lost(job, line)
            case None:
                self._lost(job, job.worker.exit_reason())

    def _lost(self, job: Job, why: str) -> None:
        """Start a worker again that has died, unless that has not helped before or the run is ending."""
        if self.is_stopping or job.learners == []:  # what it leaves undone stays for a resumed run, if anything
            self.workers.drop(job)
            return
        again = self.workers.restart(job, why)
        if job.learners is None:
            for request in self.to_score if again else ():
                again[0].worker.send(request)
        if not again:
            undone = job.learners or [LearnerId(request.run, "scoring") for request in self.to_score]
            self.to_score = self.to_score if job.learners else {}
            for run, what in dict.fromkeys(undone):
                self.failed[run].append(f"{what}: {why}")
                say(f"{what} given up: its process died {DEATHS} times ({why})")

    def _work_of(self, learners: Learners) -> Work:
        if learners is None:
            owners = {run: writer.lock.owner for run, writer in self.writers.items()}
            return partial(score_requested, owners, self.settings)
        assigned = {who: (self.runs[who.run].config, self.plans[who]) for who in learners}
        return partial(train_assigned, assigned, self.settings)

    def _progress_of(self, learners: Learners) -> object:
        return self.num_scored if learners is None else [self._steps_of(who) for who in learners]

    def _steps_of(self, who: LearnerId) -> int:
        return stored_steps(self.runs[who.run].folder, who.name)

    def _begin(self, job: Job) -> None:
        for who in job.learners or ():
            self.writers[who.run].begin(who.name, self._steps_of(who))

    def _request(self, request: ScoreRequest) -> None:
        """Have a policy played; the first one starts the worker that does."""
        self.to_score[request] = None
        scoring = next((job for job in self.workers.jobs if job.learners is None), None)
        scoring = scoring or self.workers.start("scoring worker", None)
        scoring.worker.send(request)

    def _fail(self, run: Path, what: str, error: str, trace: str) -> None:
        """`what` of a run failed by itself, and its neighbours go on."""
        self.failed[run].append(f"{what}: {error}")
        self.runs[run].folder.log_failure(what, trace)
        say(f"{what} failed: {printable(error)}")
