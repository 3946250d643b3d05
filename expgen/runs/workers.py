"""What worker processes do. Training workers train their share of the learners; a scoring worker plays policies.

Their parent writes the run folder. A score costs a training worker only the time to save the weights: the scoring
worker plays them as they are written, while the learners continue to train.
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
from expgen.runs.scoring import RunScorer
from expgen.training.checkpoint import checkpoint_file, latest_checkpoint, write_checkpoint
from expgen.training.learner import Diverged, Learner, Phase
from expgen.training.learner_state import resume_learner
from expgen.training.loop import Scores, train_learner
from expgen.training.pipeline import LocalPermits, run_pipeline
from expgen.training.resources import limit_cores, plan_resources

AT_ONCE = 4  # policies that play side by side: while one's games step, another chooses its actions


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker may use, and for how long."""

    device: str
    cores: int  # its share of the machine
    permits: Path | None  # folder of the permits to update that all training workers share; None: each has its own
    hang_seconds: float  # limit of HangLimit; 0 for none


def train_assigned(
    assigned: Mapping[LearnerId, tuple[TrainConfig, LearnerPlan]], settings: WorkerSettings, parent: Connection
) -> None:
    """Build the learners `assigned`, wait for the parent, train each from its newest checkpoint."""
    with limit_cores(settings.cores), contextlib.ExitStack() as cleanup:
        resources = plan_resources(settings.device, len(assigned))
        torch.set_num_threads(resources.torch_threads)
        learners: dict[LearnerId, Learner] = {}
        for who, (config, plan) in assigned.items():
            learners[who] = build_learner(config, plan, resources)
            cleanup.callback(learners[who].close)
        parent.send(Built({who.run: learner.env.spec for who, learner in learners.items()}))
        answers, limit = _Answers(parent), HangLimit(settings.hang_seconds)
        generators = {}
        for who, learner in learners.items():
            folder = RunFolder(who.run)
            checkpoints = folder.checkpoints_of(who.name)
            if checkpoint := latest_checkpoint(checkpoints, is_quiet=True):
                resume_learner(learner, checkpoint)
            score, report = partial(hand_over, folder.to_score(who.name)), partial(answers.report, who)
            on_checkpoint = partial(answers.saved, who)
            training = train_learner(learner, score, report, checkpoints, answers.should_stop, on_checkpoint)
            generators[who] = _announced(training, who, learner, parent, limit)
        number, shared = resources.updates_at_once, settings.permits
        run_pipeline(generators, LocalPermits(number) if shared is None else SharedPermits(shared, number))


def hand_over(folder: Path, learner: Learner) -> Generator[None, None, Scores]:
    """Write the weights of `learner` to `folder`, for another process to score; there are no scores to tell."""
    facts: dict[str, Any] = {"learner": learner.name, "env_steps": learner.env_steps}
    tensors = with_prefix("policy", learner.algorithm.policy.state_dict())
    if learner.average is not None and learner.average.updates:
        tensors |= learner.average.state()
        facts |= learner.average.facts()
    write_checkpoint(checkpoint_file(folder, learner.env_steps), tensors, facts)
    yield from ()  # there is nothing to give way for
    return {}


class _Answers:
    """Whether to stop, as the parent answers when learners are built and after each row."""

    def __init__(self, parent: Connection) -> None:
        self.parent, self.is_stop = parent, bool(parent.recv())

    def should_stop(self) -> bool:
        return self.is_stop

    def report(self, who: LearnerId, name: str, row: dict[str, float]) -> None:
        """Report a row of a learner: it is on disk before a checkpoint follows it."""
        self.parent.send(Row(who, row))
        self.is_stop = self.parent.recv()

    def saved(self, who: LearnerId, name: str, env_steps: int) -> None:
        """Report a checkpoint, which needs no answer."""
        self.parent.send(Saved(who, env_steps))


def _announced(
    life: Generator[Phase, None, None], who: LearnerId, learner: Learner, parent: Connection, limit: HangLimit
) -> Iterator[Phase]:
    """`life`, whose end the parent hears of."""

    def fail(error: str, trace: str) -> None:
        parent.send(Ended(who, learner.env_steps, error=error, traceback=trace))

    try:
        yield from limit.on(life, fail)
    except Diverged:
        parent.send(Ended(who, learner.env_steps, has_diverged=True))
        raise
    except (StorageError, EOFError, ConnectionError, GeneratorExit):  # not its own failure
        raise
    except (Exception, SystemExit) as error:
        fail(error_line(error), traceback.format_exc())
        raise
    parent.send(Ended(who, learner.env_steps))


def score_requested(owners: Mapping[Path, str], settings: WorkerSettings, parent: Connection) -> None:
    """Answer each `ScoreRequest` of `parent` as it ends.

    `owners` has the `RunLock.owner` of each run folder, without which nothing is written to it.
    """
    with limit_cores(settings.cores):
        resources = plan_resources(settings.device, AT_ONCE)
        torch.set_num_threads(resources.torch_threads)
        scorers = {}
        for run, owner in owners.items():
            folder = RunFolder(run)
            is_ours = partial(check_owner, folder, owner)
            scorers[run] = RunScorer(read_agent(run), folder.read_config()[0], folder, resources, is_ours)
        playing: dict[ScoreRequest, Generator[None, None, Scores]] = {}
        limit = HangLimit(settings.hang_seconds)
        while True:
            while len(playing) < AT_ONCE and (not playing or parent.poll()):
                request: ScoreRequest = parent.recv()
                playing[request] = limit.on(scorers[request.run].answer(request), _failing(request, parent))
            for request, work in list(playing.items()):
                try:
                    next(work)
                except StopIteration as finished:
                    del playing[request]
                    parent.send(Scored(request, finished.value))
                except (StorageError, TakenOver):
                    raise
                except (Exception, SystemExit) as error:  # whatever a game raises costs its own score alone
                    del playing[request]
                    _failing(request, parent)(error_line(error), traceback.format_exc())


def _failing(request: ScoreRequest, parent: Connection) -> OnHang:
    """Tells `parent` that `request` failed."""
    return lambda error, trace: parent.send(Scored(request, {}, error, trace))
