"""train_learner: the training loop of one learner, with scoring, reporting and checkpoints as its schedule says."""

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

from expgen.networks.actor_critic import Policy
from expgen.provenance import commit
from expgen.training.average import Weights
from expgen.training.learner import Learner, Phase
from expgen.training.learner_state import save_learner
from expgen.training.sessions import Session

Scores = dict[str, float]
Policies = Mapping[Weights, Policy]  # the policies of one learner
ScoreLearner = Callable[[Learner], Generator[None, None, Scores]]  # plays both splits, yielding between steps
OnRow = Callable[[str, dict[str, float]], object]  # called with the learner's name and one row of metrics


@dataclass(frozen=True)
class Watcher:
    """Functions that follow a run's progress and may stop it."""

    on_start: Callable[[int, dict[str, int]], None] = lambda total_steps, done: None  # `done`: steps by learner
    on_row: OnRow = lambda learner, row: None
    should_stop: Callable[[], bool] = lambda: False  # called before each rollout, or often if workers train


def train_learner(
    learner: Learner,
    score: ScoreLearner,
    on_row: OnRow,
    folder: Path,
    should_stop: Callable[[], bool],
    on_checkpoint: Callable[[str, int], None] = lambda learner, env_steps: None,
) -> Generator[Phase, None, None]:
    """Train to the end of the schedule or until `should_stop`, which is called before each rollout.

    score: called when the schedule says so; returns columns for the row of that step.
    on_row: called with the learner's name and row of metrics after each update.
    folder: the learner's checkpoints, written as its schedule says and at the end.
    on_checkpoint: called with the learner's name and steps after each checkpoint is written.
    """
    start = last_saved = time.monotonic()
    seconds_before, sessions_before, began = learner.seconds, learner.sessions, time.time()

    def save() -> None:
        save_learner(learner, folder)
        on_checkpoint(learner.name, learner.env_steps)

    while learner.env_steps < learner.schedule.env_steps and not should_stop():
        row = yield from learner.iterate()
        if _is_eval_due(learner):
            row |= yield from _as_collecting(score(learner))
        seconds = time.monotonic() - start
        learner.seconds = seconds_before + seconds
        learner.sessions = [*sessions_before, Session(began, seconds, commit())]
        on_row(learner.name, {"env_steps": learner.env_steps, "seconds": learner.seconds, **row})
        if time.monotonic() - last_saved >= learner.schedule.checkpoint_seconds:
            save()
            last_saved = time.monotonic()
    save()


def _is_eval_due(learner: Learner) -> bool:
    every, steps = learner.schedule.eval_every, learner.rollout.num_steps * learner.rollout.num_envs
    is_last = learner.env_steps >= learner.schedule.env_steps
    return every > 0 and (is_last or learner.env_steps // every > (learner.env_steps - steps) // every)


def _as_collecting(work: Generator[None, None, Scores]) -> Generator[Phase, None, Scores]:
    """Run `work`, yielding Phase.COLLECT where it yields None."""
    while True:
        try:
            next(work)
        except StopIteration as finished:
            return finished.value
        yield Phase.COLLECT
