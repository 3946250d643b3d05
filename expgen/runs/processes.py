"""Training in several worker processes on one device: the parent's side.

Training workers build and train their share of the learners; one scoring worker plays the weights they save. The parent
handles their messages and writes the run folders. Only checkpoints are written by the workers.
"""

import contextlib
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from expgen.envs.vec_env import EnvSpec
from expgen.fast.mps import cuda_mps
from expgen.fast.processes import Done, Failed, Refused, Work
from expgen.plugins import check_known_to_workers
from expgen.runs.make_config import OpenedRun
from expgen.runs.messages import Built, Ended, LearnerId, Row, Saved, Scored, ScoreRequest
from expgen.runs.plan import cost_of, spread
from expgen.runs.result import RunResult
from expgen.runs.run_lock import own_run
from expgen.runs.supervise import MAX_DEATHS, Assignment, Learners, Workers, log
from expgen.runs.workers import WorkerSettings, serve_score_requests, train_learners
from expgen.runs.writer import RunWriter, checkpoint_steps
from expgen.text import printable
from expgen.training.loop import Watcher
from expgen.training.resources import available_cores, resolve_device


def run_in_processes(
    runs: Sequence[OpenedRun], device: str, num_workers: int, watcher: Watcher, hang_seconds: float = 0.0
) -> list[RunResult]:
    """Train all learners of `runs` on `device` in `num_workers` processes; `hang_seconds` as in `train`.

    This process itself never uses the device.
    """
    for run in runs:
        config = run.config
        check_known_to_workers({"--env": config.env, "--algo": config.algo, "--encoder": config.network.encoder})
    with contextlib.ExitStack() as cleanup:
        chosen = resolve_device(device)
        variables: dict[str, str] = {}
        permits = None  # on the CPU each worker has cores of its own
        if chosen.type == "cuda":
            variables = cleanup.enter_context(cuda_mps())
            permits = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="expgen-permits-")))
        settings = WorkerSettings(str(chosen), max(1, available_cores() // num_workers), permits, hang_seconds)
        coordinator = _Coordinator(runs, settings, variables, watcher)
        cleanup.callback(coordinator.workers.close)
        coordinator.build(num_workers)
        for run in runs:
            lock = cleanup.enter_context(own_run(run.folder))
            cleanup.callback(run.callbacks.on_end, "failed")  # no effect if the run has ended otherwise
            prefix = f"{run.name}/" if len(runs) > 1 else ""
            coordinator.writers[run.folder.path] = RunWriter(run, lock, watcher.on_row, prefix)
        cleanup.callback(coordinator.workers.close)  # on an error, before the journal says that the run failed
        coordinator.train()
        coordinator.workers.close()
        return [coordinator.finish(path) for path in coordinator.writers]


class _Coordinator:
    """Starts the workers of all runs, handles their messages and keeps the state of every learner."""

    def __init__(
        self, runs: Sequence[OpenedRun], settings: WorkerSettings, variables: dict[str, str], watcher: Watcher
    ) -> None:
        """`variables` are environment variables to add in worker processes."""
        self.settings, self.watcher = settings, watcher
        self.workers = Workers(self._work_of, self._progress_of, variables)
        self.runs = {run.folder.path: run for run in runs}
        self.plans = {LearnerId(run.folder.path, plan.name): plan for run in runs for plan in run.plans}
        self.writers: dict[Path, RunWriter] = {}  # empty until all learners are built
        self.specs: dict[Path, EnvSpec] = {}
        self.to_score: dict[ScoreRequest, None] = {}  # pending requests, oldest first
        self.num_scored = 0
        self.diverged: list[LearnerId] = []
        self.failed: dict[Path, list[str]] = {path: [] for path in self.runs}
        self.is_stopping = False

    def build(self, num_workers: int) -> None:
        """Wait until every worker has built its learners, so that bad input is refused before anything is written."""
        costs = {learner: cost_of(plan, self._steps_of(learner)) for learner, plan in self.plans.items()}
        for number, learners in enumerate(spread(costs, num_workers)):
            self.workers.start(f"worker {number}", learners)
        while any(not worker.has_built for worker in self.workers.active):
            self._handle_messages()
        for run, reasons in self.failed.items():
            if run not in self.specs:
                raise RuntimeError("; ".join(reasons) or f"no worker could build the learners of {run}")

    def train(self) -> None:
        """Train until every learner has ended and is scored; a stop leaves pending scores for the next session."""
        writers = self.writers.values()
        for run, writer in self.writers.items():
            writer.start(self.specs[run])
        training = self.workers.training
        for worker in training:
            self._rewind(worker)
        done = {writer.prefix + name: steps for writer in writers for name, steps in writer.env_steps.items()}
        self.watcher.on_start(sum(plan.steps for plan in self.plans.values()), done)
        for writer in writers:
            for request in list(writer.pending_scores()):
                self._request_score(request)
        for worker in training:
            worker.process.send(self.is_stopping)
        while self.workers.training or (self.to_score and not self.is_stopping):
            self._handle_messages()
        for run, writer in self.writers.items():
            if writer.is_complete and writer.run.consensus is not None and not self.is_stopping:
                self._request_score(ScoreRequest(run, None, 0, None, writer.has_new_vote))
        while self.to_score and not self.is_stopping:
            self._handle_messages()

    def finish(self, run: Path) -> RunResult:
        """Write the final state of a run to its journal."""
        diverged = tuple(name for path, name in self.diverged if path == run)
        is_scored = not any(request.run == run for request in self.to_score)
        return self.writers[run].finish(diverged, tuple(self.failed[run]), is_scored)

    def _handle_messages(self) -> None:
        self.is_stopping = self.is_stopping or self.watcher.should_stop()
        for sender, message in self.workers.messages():
            self._handle(sender, message)

    def _handle(self, sender: Assignment, message: object) -> None:
        match message:
            case Built(specs):
                self.specs |= specs
                sender.has_built = True
                if self.writers:  # a restarted worker
                    self._rewind(sender)
                    sender.process.send(self.is_stopping)
            case Row(learner, row):
                if request := self.writers[learner.run].write_row(learner.name, row):
                    self._request_score(request)
                sender.process.send(self.is_stopping)
            case Saved(learner, env_steps):
                self.writers[learner.run].report_checkpoint(learner.name, env_steps)
            case Ended(learner, env_steps, has_diverged, error, trace):
                assert sender.learners is not None
                sender.learners.remove(learner)
                if error:
                    self._record_failure(learner.run, learner.name, error, trace)
                elif has_diverged:
                    self.diverged.append(learner)
                else:
                    self.writers[learner.run].env_steps[learner.name] = env_steps
            case Scored(request, scores, error, trace):
                self.to_score.pop(request, None)
                self.num_scored += 1
                if error:
                    self._record_failure(request.run, f"scoring {request.learner or 'the ensemble'}", error, trace)
                else:
                    self.writers[request.run].write_scores(request, scores)
            case Done():
                self.workers.finish(sender)
            case Refused(error):
                raise error
            case Failed(line, trace):
                for run in {learner.run for learner in sender.learners or ()} or self.writers:
                    if run in self.writers:
                        self.runs[run].folder.log_failure(sender.name, trace)
                self._handle_death(sender, line)
            case None:
                self._handle_death(sender, sender.process.exit_reason())

    def _handle_death(self, dead: Assignment, why: str) -> None:
        """Restart a worker that died. If it is given up, record its learners or its score requests as failed."""
        if self.is_stopping or dead.learners == []:  # a resumed run does any work that is left
            self.workers.remove(dead)
            return
        restarted = self.workers.restart(dead, why)
        if restarted and dead.learners is None:
            for request in self.to_score:
                restarted[0].process.send(request)
        if restarted:
            return
        lost = dead.learners
        if lost is None:
            lost = [LearnerId(request.run, "scoring") for request in self.to_score]
            self.to_score = {}
        for run, name in dict.fromkeys(lost):
            self.failed[run].append(f"{name}: {why}")
            log(f"{name} failed: its process died {MAX_DEATHS} times ({why})")

    def _work_of(self, learners: Learners) -> Work:
        if learners is None:
            owners = {run: writer.lock.owner for run, writer in self.writers.items()}
            return partial(serve_score_requests, owners, self.settings)
        assigned = {learner: (self.runs[learner.run].config, self.plans[learner]) for learner in learners}
        return partial(train_learners, assigned, self.settings)

    def _progress_of(self, learners: Learners) -> object:
        return self.num_scored if learners is None else [self._steps_of(learner) for learner in learners]

    def _steps_of(self, learner: LearnerId) -> int:
        return checkpoint_steps(self.runs[learner.run].folder, learner.name)

    def _rewind(self, worker: Assignment) -> None:
        """Drop what the worker's learners reported after the checkpoints that they resume from."""
        for learner in worker.learners or ():
            self.writers[learner.run].rewind(learner.name, self._steps_of(learner))

    def _request_score(self, request: ScoreRequest) -> None:
        """Send `request` to the scoring worker, which the first request starts."""
        self.to_score[request] = None
        scorer = next((worker for worker in self.workers.active if worker.learners is None), None)
        scorer = scorer or self.workers.start("scoring worker", None)
        scorer.process.send(request)

    def _record_failure(self, run: Path, what: str, error: str, trace: str) -> None:
        """Record that one learner or one score of a run failed; the others go on."""
        self.failed[run].append(f"{what}: {error}")
        self.runs[run].folder.log_failure(what, trace)
        log(f"{what} failed: {printable(error)}")
