"""train: a config → learners side by side → checkpoints, metrics and scores in a run folder."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from expgen.evaluation.evaluate import result_of
from expgen.evaluation.scores import check_can_append, rows_so_far
from expgen.runs.adopt import adopt as adopt_from
from expgen.runs.adopt import check_can_go_on, plans_in
from expgen.runs.config import TrainConfig
from expgen.runs.milestones import open_milestones, refuse_passed
from expgen.runs.open_run import open_run
from expgen.runs.plan import LearnerPlan, build_learner
from expgen.runs.folder import RunFolder
from expgen.runs.scoring import Scorer
from expgen.runs.sitting import State, sitting
from expgen.networks.actor_critic import Policy
from expgen.storage.location import Location, is_url
from expgen.storage.workspace import workspace
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner import Learner
from expgen.training.learner_state import resume_learner
from expgen.training.life import Report, Scores, life_of
from expgen.training.metrics import MetricsFile, TensorBoardEvents
from expgen.training.pipeline import Turn, run_side_by_side
from expgen.training.resources import plan_resources


@dataclass(frozen=True)
class RunResult:
    """What a sitting of training left behind."""

    folder: RunFolder
    config: TrainConfig
    diverged: tuple[str, ...]
    is_complete: bool


def train(
    env: str | None = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Location | None = None,
    device: str = "auto",
    resume: bool = False,
    adopt: Sequence[Location] = (),
    on_start: Callable[[int, dict[str, int]], None] = lambda total_steps, done: None,
    on_row: Report = lambda learner, row: None,
    should_stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> RunResult:
    """Train `algo` (default ppo) on `env` (default minimaze) in the folder `run`, or at that URL.

    `settings` are fields of TrainConfig and of the configs inside it. With `resume` a run that is already in the
    folder goes on: it is read from there, and only what RESUMABLE in open_run.py names may be raised. `adopt` names
    run folders whose trained policies join this one.
    """
    with contextlib.ExitStack() as cleanup:
        if is_url(run):
            open_run(env, algo, preset, run, resume, adopt, **settings)  # what it refuses is taken from nobody
            space = cleanup.enter_context(workspace(str(run)))
            run, should_stop = space.folder, space.stop_when_taken_over(should_stop)
        folder, config = open_run(env, algo, preset, run, resume, adopt, **settings)
        adopt_from(folder, config, adopt)
        return _run(folder, config, device, on_start, on_row, should_stop)


def _check_can_go_on(folder: RunFolder, config: TrainConfig, plans: Sequence[LearnerPlan]) -> None:
    """Refuse what cannot be asked of a run before it is taken over: it is none the worse for it."""
    check_can_append(folder.scores_file)
    rows_so_far(folder.scores_file)
    env_steps = dict.fromkeys((plan.name for plan in plans), 0)
    for plan in plans:
        if checkpoint := latest_checkpoint(folder.checkpoints_of(plan.name)):
            check_can_go_on(plan, checkpoint, f"--run {folder.path}")
            env_steps[plan.name] = checkpoint.facts["env_steps"]
    refuse_passed(folder, config, env_steps)


def _run(
    folder: RunFolder,
    config: TrainConfig,
    device: str,
    on_start: Callable[[int, dict[str, int]], None],
    on_row: Report,
    should_stop: Callable[[], bool],
) -> RunResult:
    plans = plans_in(folder, config)
    _check_can_go_on(folder, config, plans)
    resources = plan_resources(device, len(plans))
    events = TensorBoardEvents(folder.events_folder)

    def report(learner: str, row: dict[str, float]) -> None:
        seat.check()
        metrics.append(learner, row)
        events.append(learner, row)
        on_row(learner, row)

    with contextlib.ExitStack() as cleanup:
        cleanup.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(resources.torch_threads)
        cleanup.callback(events.close)
        learners = []
        for plan in plans:
            learner = build_learner(config, plan, resources)
            cleanup.callback(learner.close)
            learners.append(learner)
        seat = cleanup.enter_context(sitting(folder))  # before the checkpoints that it goes on from are read
        scorer, metrics = Scorer(config, folder, resources, seat.check), MetricsFile(folder.metrics_file)
        for learner in learners:
            if checkpoint := latest_checkpoint(folder.checkpoints_of(learner.name), is_quiet=True):
                resume_learner(learner, checkpoint)
        milestones = open_milestones(folder, config, learners[0].env.spec, learners)
        folder.write_config(config, learners[0].env.spec)
        for learner in learners:
            metrics.forget_after(learner.name, learner.env_steps)
            events.start(learner.name, learner.env_steps)
        total = sum(learner.schedule.env_steps for learner in learners)
        on_start(total, {learner.name: learner.env_steps for learner in learners})
        turns = []
        for plan, learner in zip(plans, learners, strict=True):

            def score(
                policy: Policy, plan: LearnerPlan = plan, learner: Learner = learner
            ) -> Generator[None, None, Scores]:
                return scorer.score(plan, learner.env_steps, policy)

            checkpoints = folder.checkpoints_of(learner.name)
            life = life_of(learner, score, report, checkpoints, should_stop, milestones[learner.name])
            turns.append(Turn(learner.name, life))
        diverged = run_side_by_side(turns, resources.updates_at_once)
        for plan, learner in zip(plans, learners, strict=True):
            if scorer.is_wanting(plan, learner.env_steps):  # joined complete, so that no sitting here has scored it
                result_of(scorer.score(plan, learner.env_steps, learner.algorithm.policy))
        is_complete = all(learner.env_steps >= learner.schedule.env_steps for learner in learners)
        if is_complete and config.consensus is not None:
            scorer.score_consensus()
        state: State = "diverged" if diverged else "done" if is_complete else "stopped"
        seat.write(state, ", ".join(diverged))
    return RunResult(folder, config, tuple(diverged), is_complete)
