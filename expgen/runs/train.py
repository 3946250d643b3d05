"""train: a config → learners side by side → checkpoints, metrics and scores in a run folder."""

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import torch

from expgen.agents.build import policies_from
from expgen.agents.description import AgentDescription
from expgen.envs.trust import check_trusted, trust_env
from expgen.evaluation.evaluate import result_of
from expgen.evaluation.scores import check_can_append, rows_so_far
from expgen.runs.adopt import plans_in
from expgen.runs.agent_files import agent_of_run, write_agent
from expgen.runs.folder import RunFolder
from expgen.runs.join import adopt as adopt_from
from expgen.runs.join import check_can_go_on
from expgen.runs.journal import State
from expgen.runs.open_run import open_run
from expgen.runs.plan import LearnerPlan, build_learner
from expgen.runs.processes import PlannedRun, run_in_processes
from expgen.runs.result import RunResult
from expgen.runs.run_lock import own_run
from expgen.runs.scoring import RunScorer, is_wanting
from expgen.runs.to_score import drop_after, files_to_score, remove_empty
from expgen.storage.location import Location, is_url
from expgen.storage.workspace import workspace
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner import Learner
from expgen.training.learner_state import resume_learner
from expgen.training.life import Policies, Report, Scores, life_of
from expgen.training.metrics import MetricsFile, TensorBoardEvents
from expgen.training.pipeline import Turn, run_side_by_side
from expgen.training.repair_metrics import repair_metrics
from expgen.training.resources import check_processes, num_workers, plan_resources


def train(
    env: str | None = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Location | None = None,
    device: str = "auto",
    processes: int | str = 1,
    resume: bool = False,
    take_over: bool = False,
    adopt: Sequence[Location] = (),
    on_start: Callable[[int, dict[str, int]], None] = lambda total_steps, done: None,
    on_row: Report = lambda learner, row: None,
    should_stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> RunResult:
    """Train a policy, or several side by side, and write checkpoints, metrics and scores to a run folder.

    env: environment to train on; minimaze by default.
    algo: what learns; ppo by default.
    preset: scale of the run, one of PRESETS.
    run: run folder or URL.
    device: auto, cpu, cuda or cuda:N.
    processes: number of worker processes that share the learners; 1 is this process, `auto` several on a GPU with
        cores to spare. Workers are new Python processes: they know no environments that only this one registered.
    resume: continue the run that is in the folder; only what RESUMABLE in open_run.py names may be raised.
    take_over: continue it even if another process of this machine trains it now; that process stops.
    adopt: run folders whose trained policies join this run.
    on_start, on_row: called with the total steps and those done, then with each row of metrics.
    should_stop: asked after each rollout; True saves a checkpoint and returns.
    settings: fields of TrainConfig and of the configs inside it.
    """
    what = {"env": env, "algo": algo, "preset": preset, "run": run, "adopt": adopt, **settings}
    request = {**what, "resume": resume, "take_over": take_over}
    return train_together([request], device, processes, on_start, on_row, should_stop)[0]


def train_together(
    requests: Sequence[Mapping[str, Any]],
    device: str = "auto",
    processes: int | str = 1,
    on_start: Callable[[int, dict[str, int]], None] = lambda total_steps, done: None,
    on_row: Report = lambda learner, row: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[RunResult]:
    """Train several runs, whose learners share the worker processes; in one process, run after run.

    Each request has the arguments of `train` that say what to train and where; the others are as there. Learners are
    told of as `RUN/LEARNER`. A stop may leave the last runs without a result.
    """
    check_processes(processes)
    with contextlib.ExitStack() as cleanup:
        runs = []
        for request in requests:
            run, should_stop = _planned(cleanup, should_stop, **request)
            runs.append(run)
        workers = num_workers(processes, device, sum(run.num_unfinished for run in runs))
        if workers > 1:
            return run_in_processes(runs, device, workers, on_start, on_row, should_stop)
        results: list[RunResult] = []
        for run in runs:
            if results and should_stop():
                break
            results.append(_run(run, device, on_start, on_row, should_stop))
        return results


def _planned(
    cleanup: contextlib.ExitStack,
    should_stop: Callable[[], bool],
    env: str | None = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Location | None = None,
    resume: bool = False,
    take_over: bool = False,
    adopt: Sequence[Location] = (),
    **settings: Any,
) -> tuple[PlannedRun, Callable[[], bool]]:
    """A run that may begin, and when it should stop; `cleanup` brings what lies at a URL there in the end."""
    if env is not None:
        trust_env(env)
    name = str(run).rpartition("/")[2]
    if is_url(run):
        open_run(env, algo, preset, run, resume, take_over, adopt, **settings)  # before the URL is taken over
        space = cleanup.enter_context(workspace(str(run)))
        run, should_stop = space.folder, space.stop_when_taken_over(should_stop)
    folder, config, consensus = open_run(env, algo, preset, run, resume, take_over, adopt, **settings)
    check_trusted(config.env, config.options)
    adopt_from(folder, config, adopt)
    plans = plans_in(folder, config)
    left = _check_can_go_on(folder, plans)
    unfinished = sum(steps > 0 for steps in left.values())
    return PlannedRun(name, folder, config, plans, consensus, unfinished), should_stop


def _check_can_go_on(folder: RunFolder, plans: Sequence[LearnerPlan]) -> dict[str, int]:
    """Refuse bad input before the run is taken over or written to.

    Returns the steps that each learner has left.
    """
    check_can_append(folder.scores_file)
    rows_so_far(folder.scores_file)
    env_steps = dict.fromkeys((plan.name for plan in plans), 0)
    for plan in plans:
        if checkpoint := latest_checkpoint(folder.checkpoints_of(plan.name)):
            check_can_go_on(plan, checkpoint, f"--run {folder.path}")
            env_steps[plan.name] = checkpoint.facts["env_steps"]
    return {plan.name: plan.steps - env_steps[plan.name] for plan in plans}


def _run(
    run: PlannedRun,
    device: str,
    on_start: Callable[[int, dict[str, int]], None],
    on_row: Report,
    should_stop: Callable[[], bool],
) -> RunResult:
    """All learners in this process."""
    folder, config, plans = run.folder, run.config, run.plans
    resources = plan_resources(device, len(plans))
    events = TensorBoardEvents(folder.events_folder)

    def report(learner: str, row: dict[str, float]) -> None:
        lock.check()
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
        lock = cleanup.enter_context(own_run(folder))  # before the checkpoints that it resumes from are read
        repair_metrics(folder.metrics_file)
        agent = agent_of_run(folder, config, learners[0].env.spec, plans, run.consensus)
        scorer = RunScorer(agent, config, folder, resources, lock.check)
        metrics = MetricsFile(folder.metrics_file)
        for learner in learners:
            if checkpoint := latest_checkpoint(folder.checkpoints_of(learner.name), is_quiet=True):
                resume_learner(learner, checkpoint)
        folder.write_config(config, agent.spec)
        write_agent(agent)
        for learner in learners:
            metrics.forget_after(learner.name, learner.env_steps)
            events.start(learner.name, learner.env_steps)
            drop_after(folder, learner.name, learner.env_steps)
        total = sum(learner.schedule.env_steps for learner in learners)
        on_start(total, {learner.name: learner.env_steps for learner in learners})
        _score_left(agent, folder, plans, scorer, metrics)
        turns = []
        for plan, learner in zip(plans, learners, strict=True):

            def score(
                policies: Policies, plan: LearnerPlan = plan, learner: Learner = learner
            ) -> Generator[None, None, Scores]:
                return scorer.score(plan, learner.env_steps, policies)

            checkpoints = folder.checkpoints_of(learner.name)
            life = life_of(learner, score, report, checkpoints, should_stop)
            turns.append(Turn(learner.name, life))
        diverged = run_side_by_side(turns, resources.updates_at_once)
        for plan, learner in zip(plans, learners, strict=True):
            if is_wanting(folder, config, plan, learner.env_steps):  # it was adopted complete
                result_of(scorer.score(plan, learner.env_steps, learner.policies()))
        is_complete = all(learner.env_steps >= learner.schedule.env_steps for learner in learners)
        if is_complete and agent.consensus is not None:
            scorer.score_ensemble([learner.name for learner in learners if "average" in learner.policies()])
        state: State = "diverged" if diverged else "done" if is_complete else "stopped"
        lock.save(state, ", ".join(diverged))
    return RunResult(folder, config, tuple(diverged), is_complete)


def _score_left(
    agent: AgentDescription,
    folder: RunFolder,
    plans: Sequence[LearnerPlan],
    scorer: RunScorer,
    metrics: MetricsFile,
) -> None:
    """Play what worker processes of an earlier session left to score."""
    for plan in plans:
        for env_steps, weights in files_to_score(folder, plan.name):
            policies = policies_from(weights, agent.policies[plan.name], agent.spec, scorer.device)
            metrics.complete(plan.name, env_steps, result_of(scorer.score(plan, env_steps, policies)))
            weights.unlink()
    remove_empty(folder)
