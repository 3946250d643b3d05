"""One policy's whole life, as a generator: rollouts and updates, scored, reported and saved as its schedule says."""

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
Policies = Mapping[Weights, Policy]  # what can be played of one learner
ScoreLearner = Callable[[Learner], Generator[None, None, Scores]]  # plays both splits, giving way as it goes
Report = Callable[[str, dict[str, float]], object]  # learner's name, one row of metrics


@dataclass(frozen=True)
class Watcher:
    """Whom work tells how far it is, and who may end it."""

    on_start: Callable[[int, dict[str, int]], None] = lambda total_steps, done: None  # steps in all; by learner
    on_row: Report = lambda learner, row: None
    should_stop: Callable[[], bool] = lambda: False  # asked after each rollout


def life_of(
    learner: Learner,
    score: ScoreLearner,
    report: Report,
    folder: Path,
    should_stop: Callable[[], bool],
    on_checkpoint: Callable[[str, int], None] = lambda learner, env_steps: None,
) -> Generator[Phase, None, None]:
    """Train to the schedule's end or until `should_stop`, then checkpoint. Each yield: come back later.

    `on_checkpoint` is told the learner's name and steps of every checkpoint in `folder`, once it is written.
    """
    began = saved = time.monotonic()
    before, sessions, now = learner.seconds, learner.sessions, time.time()
    while learner.env_steps < learner.schedule.env_steps and not should_stop():
        row = yield from learner.iterate()
        if _eval_is_due(learner):
            row |= yield from _giving_way(score(learner))
        learner.seconds = before + time.monotonic() - began
        learner.sessions = [*sessions, Session(now, learner.seconds - before, commit())]
        report(learner.name, {"env_steps": learner.env_steps, "seconds": learner.seconds, **row})
        if time.monotonic() - saved >= learner.schedule.checkpoint_seconds:
            save_learner(learner, folder)
            on_checkpoint(learner.name, learner.env_steps)
            saved = time.monotonic()
    save_learner(learner, folder)
    on_checkpoint(learner.name, learner.env_steps)


def _eval_is_due(learner: Learner) -> bool:
    every, step = learner.schedule.eval_every, learner.rollout.num_steps * learner.rollout.num_envs
    is_last = learner.env_steps >= learner.schedule.env_steps
    return every > 0 and (is_last or learner.env_steps // every > (learner.env_steps - step) // every)


def _giving_way(work: Generator[None, None, Scores]) -> Generator[Phase, None, Scores]:
    while True:
        try:
            next(work)
        except StopIteration as finished:
            return finished.value
        yield Phase.COLLECT
