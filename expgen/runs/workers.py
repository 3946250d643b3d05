"""The worker processes of runs: training workers train their share of the learners, the scoring worker plays policies.

Their parent writes the run folder. A training worker does not wait for scores: it saves the weights, the scoring worker
plays them, and the learners continue to train meanwhile.
"""

import contextlib
import traceback
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from expgen.errors import StorageError, TakenOver, error_line
from expgen.fast.shared_permits import SharedPermits
from expgen.networks.state import with_prefix
from expgen.runs.agent_files import read_agent
from expgen.runs.config import TrainConfig
from expgen.runs.folder import RunFolder
from expgen.runs.hang_limit import HangLimit, OnHang
from expgen.runs.messages import Built, Ended, LearnerId, Row, Saved, Scored, ScoreRequest
from expgen.runs.plan import LearnerPlan, build_learner
from expgen.runs.run_lock import check_owner
from expgen.runs.run_scorer import RunScorer
from expgen.training.checkpoint import checkpoint_file, latest_checkpoint, write_checkpoint
from expgen.training.learner import Diverged, Learner, Phase
from expgen.training.learner_state import resume_learner
from expgen.training.loop import Scores, train_learner
from expgen.training.pipeline import LocalPermits, run_pipeline
from expgen.training.resources import limit_cores, plan_resources

PARALLEL_SCORES = 4  # policies played in turn: while the games of one step, another chooses its actions


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker may use, and when it is considered hung."""

    device: str
    cores: int  # its share of the machine
    permits: Path | None  # folder of the update permits that all training workers share; None: each has its own
    hang_seconds: float  # limit of HangLimit; 0: no limit


def train_learners(
    assigned: Mapping[LearnerId, tuple[TrainConfig, LearnerPlan]], settings: WorkerSettings, parent: Connection
) -> None:
    """Build the assigned learners, wait for the parent, resume each from its newest checkpoint and train it."""
    with limit_cores(settings.cores), contextlib.ExitStack() as cleanup:
        resources = plan_resources(settings.device, len(assigned))
        torch.set_num_threads(resources.torch_threads)
        learners: dict[LearnerId, Learner] = {}
        for learner_id, (config, plan) in assigned.items():
            learners[learner_id] = build_learner(config, plan, resources)
            cleanup.callback(learners[learner_id].close)
        parent.send(Built({learner_id.run: learner.env.spec for learner_id, learner in learners.items()}))
        is_stopping, limit = bool(parent.recv()), HangLimit(settings.hang_seconds)
        generators = {}
        for learner_id, learner in learners.items():
            folder = RunFolder(learner_id.run)
            checkpoints = folder.checkpoints_of(learner_id.name)
            if checkpoint := latest_checkpoint(checkpoints, is_quiet=True):
                resume_learner(learner, checkpoint)
            score = partial(save_to_score, folder.weights_to_score_of(learner_id.name))
            reporter = _Reporter(parent, learner_id, learner, is_stopping)
            training = train_learner(
                learner, score, reporter.on_row, checkpoints, reporter.should_stop, reporter.on_checkpoint
            )
            generators[learner_id] = reporter.until_end(training, limit)
        number, shared = resources.updates_at_once, settings.permits
        run_pipeline(generators, LocalPermits(number) if shared is None else SharedPermits(shared, number))


def save_to_score(folder: Path, learner: Learner) -> Generator[None, None, Scores]:
    """Write the weights of `learner` to `folder` for the scoring worker; returns no scores."""
    facts: dict[str, Any] = {"learner": learner.name, "env_steps": learner.env_steps}
    tensors = with_prefix("policy", learner.algorithm.policy.state_dict())
    if learner.average is not None and learner.average.updates:
        tensors |= learner.average.state()
        facts |= learner.average.facts()
    write_checkpoint(checkpoint_file(folder, learner.env_steps), tensors, facts)
    yield from ()  # a generator, as `train_learner` expects, that never yields
    return {}


class _Reporter:
    """Reports rows, checkpoints and the end of one learner to the parent, which answers rows with whether to stop."""

    def __init__(self, parent: Connection, learner_id: LearnerId, learner: Learner, is_stopping: bool) -> None:
        self.parent, self.learner_id, self.learner, self.is_stopping = parent, learner_id, learner, is_stopping

    def should_stop(self) -> bool:
        return self.is_stopping

    def on_row(self, name: str, row: dict[str, float]) -> None:
        """Send a row and wait until it is written, so that no checkpoint is ahead of the rows."""
        self.parent.send(Row(self.learner_id, row))
        self.is_stopping = self.parent.recv()

    def on_checkpoint(self, name: str, env_steps: int) -> None:
        self.parent.send(Saved(self.learner_id, env_steps))

    def on_failure(self, error: str, trace: str) -> None:
        self.parent.send(Ended(self.learner_id, self.learner.env_steps, error=error, traceback=trace))

    def until_end(self, training: Generator[Phase, None, None], limit: HangLimit) -> Iterator[Phase]:
        """Yield from `training`, then report how it ended."""
        try:
            yield from limit.limit(training, self.on_failure)
        except Diverged:
            self.parent.send(Ended(self.learner_id, self.learner.env_steps, has_diverged=True))
            raise
        except (StorageError, EOFError, ConnectionError, GeneratorExit):  # of the run or the parent, not the learner
            raise
        except (Exception, SystemExit) as error:
            self.on_failure(error_line(error), traceback.format_exc())
            raise
        self.parent.send(Ended(self.learner_id, self.learner.env_steps))


def serve_score_requests(owners: Mapping[Path, str], settings: WorkerSettings, parent: Connection) -> None:
    """Play each `ScoreRequest` of `parent` and send back the scores.

    owners: the `RunLock.owner` of each run folder, checked before each write.
    """
    with limit_cores(settings.cores):
        resources = plan_resources(settings.device, PARALLEL_SCORES)
        torch.set_num_threads(resources.torch_threads)
        scorers = {}
        for run, owner in owners.items():
            folder = RunFolder(run)
            check_lock = partial(check_owner, folder, owner)
            scorers[run] = RunScorer(read_agent(run), folder.read_config()[0], folder, resources, check_lock)
        playing: dict[ScoreRequest, Generator[None, None, Scores]] = {}
        limit = HangLimit(settings.hang_seconds)
        while True:
            while len(playing) < PARALLEL_SCORES and (not playing or parent.poll()):
                request: ScoreRequest = parent.recv()
                scoring = scorers[request.run].score_request(request)
                playing[request] = limit.limit(scoring, _on_failure(request, parent))
            for request, work in list(playing.items()):
                try:
                    next(work)
                except StopIteration as finished:
                    del playing[request]
                    parent.send(Scored(request, finished.value))
                except (StorageError, TakenOver):
                    raise
                except (Exception, SystemExit) as error:  # an error of one game fails only its own score
                    del playing[request]
                    _on_failure(request, parent)(error_line(error), traceback.format_exc())


def _on_failure(request: ScoreRequest, parent: Connection) -> OnHang:
    """Return a callback that tells `parent` that `request` failed."""
    return lambda error, trace: parent.send(Scored(request, {}, error, trace))
