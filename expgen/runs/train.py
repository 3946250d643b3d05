"""train: train the learners of a config and write checkpoints, metrics and scores to a run folder."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from expgen.envs.make import check_trusted, resolve_env
from expgen.envs.wrappers import WRAPPERS
from expgen.errors import check_range, error_line
from expgen.evaluation.evaluate import result_of
from expgen.runs.make_config import OpenedRun, RunRequest, open_run
from expgen.runs.messages import ScoreRequest
from expgen.runs.plan import build_learner
from expgen.runs.processes import run_in_processes
from expgen.runs.progress import with_progress
from expgen.runs.result import RunResult
from expgen.runs.run_lock import own_run
from expgen.runs.run_scorer import RunScorer
from expgen.runs.writer import RunWriter
from expgen.settings import check_location, check_type
from expgen.storage.location import Location, is_url
from expgen.storage.workspace import workspace
from expgen.text import notify, printable
from expgen.training.callbacks import Callback, Callbacks, check_callbacks
from expgen.training.checkpoint import latest_checkpoint
from expgen.training.learner import Diverged, Learner
from expgen.training.learner_state import resume_learner
from expgen.training.loggers import LOGGERS, TensorBoardEvents, check_loggers
from expgen.training.loop import OnRow, Watcher, train_learner
from expgen.training.pipeline import LocalPermits, run_pipeline
from expgen.training.resources import check_processes, num_workers, plan_resources, resolve_device


def train(
    env: Any = None,
    algo: str | None = None,
    preset: str | None = None,
    run: Location | None = None,
    device: str | torch.device = "auto",
    processes: int | str = 1,
    hang_seconds: float = 0.0,
    resume: bool = False,
    take_over: bool = False,
    quiet: bool = False,
    log: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    on_start: Callable[[int, dict[str, int]], None] = lambda total_steps, done: None,
    on_row: OnRow = lambda learner, row: None,
    should_stop: Callable[[], bool] = lambda: False,
    **settings: Any,
) -> RunResult:
    """Train one or more policies and write checkpoints, metrics and scores to a run folder.

    env: environment to train on, as in `make_env`: a name, an environment or a factory (default minimaze).
    algo: algorithm (default ppo; openend with preset="best").
    preset: scale of the run, one of PRESETS.
    run: run folder or URL.
    device: auto, cpu, cuda or cuda:N.
    processes: number of worker processes that share the learners. 1 trains in this process; `auto` starts several on a
        GPU if there are enough cores. Workers are new Python processes: they know names that a module registers, but
        not those that a script or notebook registers.
    hang_seconds: longest time for one step of a learner's games or one minibatch; a learner that takes longer is ended
        and the others go on. With a limit, learners train in worker processes. 0: no limit.
    resume: continue the run in the folder; only the settings in RESUMABLE (make_config.py) may be raised.
    take_over: continue the run even if another process of this machine is training it; that process stops.
    quiet: show no progress bar; there is one by default on a terminal and in a notebook.
    log: further tools to log to: `wandb`, `mlflow`. TensorBoard events are always written.
    callbacks: Callback objects, called at updates, scores, checkpoints and the end.
    on_start: called with the total steps and the steps already done by each learner.
    on_row: called with each learner's name and row of metrics; the row also has `envs`, its number of environments.
    should_stop: called before each rollout, with worker processes several times a second. Once it returns True, every
        learner finishes its rollout and update and writes a checkpoint, and the call returns.
    settings: fields of TrainConfig and of the configs inside it; `options` of the environment; `wrappers`, its
        Gymnasium wrappers.

    Ctrl-C does the same; the result's `is_complete` is False then. A second Ctrl-C raises KeyboardInterrupt at once.
    """
    for name, value in (("algo", algo), ("preset", preset)):
        check_type(name, value, (str, type(None)), "a name; see expgen train --help")
    for name, flag in (("resume", resume), ("take_over", take_over), ("quiet", quiet)):
        check_type(name, flag, bool, "True or False")
    if run is not None:
        check_location("run", run)
    request = RunRequest(env, algo, preset, run, resume, take_over, settings, log, callbacks)
    with with_progress(Watcher(on_start, on_row, should_stop), quiet) as watcher:
        (result,) = train_runs([request], str(resolve_device(device)), processes, hang_seconds, watcher)
    if not (quiet or result.is_complete or result.diverged or result.failed):
        call = f"expgen.train(run={str(run or result.folder.path)!r}, resume=True)"
        print(f"expgen: stopped; continue with: {call}", file=sys.stderr)
    return result


def train_runs(
    requests: Sequence[RunRequest],
    device: str = "auto",
    processes: int | str = 1,
    hang_seconds: float = 0.0,
    watcher: Watcher | None = None,
) -> list[RunResult]:
    """Train several runs: their learners share the worker processes, or without workers the runs train in turn.

    `device`, `processes` and `hang_seconds` are as in `train`. With several runs in worker processes, `watcher` gets
    learners as `RUN/LEARNER`. After a stop the last runs may have no result.
    """
    check_processes(processes)
    check_type("--hang-seconds", hang_seconds, (int, float), "seconds, or 0 for no limit")
    check_range("--hang-seconds", hang_seconds, 0, sys.maxsize)
    watcher = watcher or Watcher()
    requests = [_with_env_name(request) for request in requests]
    with contextlib.ExitStack() as cleanup:
        runs = []
        for request in requests:
            run, should_stop = _open(cleanup, request, watcher.should_stop)
            watcher = replace(watcher, should_stop=should_stop)
            runs.append(run)
        workers = num_workers(processes, device, sum(run.check_can_train() for run in runs))
        if workers > 1 or hang_seconds:
            return run_in_processes(runs, device, workers, watcher, hang_seconds)
        results: list[RunResult] = []
        for request, run in zip(requests, runs, strict=True):
            if results and watcher.should_stop():
                break
            if results and not is_url(request.run):  # another process may have started it during the previous runs
                open_run(request)
            results.append(_train_here(run, device, watcher))
        return results


def _open(
    cleanup: contextlib.ExitStack, request: RunRequest, should_stop: Callable[[], bool]
) -> tuple[OpenedRun, Callable[[], bool]]:
    """Open a run and return it with its stop condition; `cleanup` uploads a run at a URL."""
    check_loggers(request.log)
    check_callbacks(request.callbacks)
    name = str(request.run).rpartition("/")[2]
    if is_url(request.run):
        open_run(request)  # refuse bad input before taking over the URL
        space = cleanup.enter_context(workspace(str(request.run)))
        request, should_stop = replace(request, run=space.folder), space.stop_when_taken_over(should_stop)
    run = open_run(request)
    check_trusted(run.config.env, run.config.options)
    loggers = [TensorBoardEvents(run.folder.events_folder), *(LOGGERS[name]() for name in request.log)]
    return replace(run, name=name, callbacks=Callbacks([*loggers, *request.callbacks])), should_stop


def _with_env_name(request: RunRequest) -> RunRequest:
    """Replace the environment and its options by what config.json stores; modules that they name become trusted."""
    env, settings = request.env, dict(request.settings)
    check_type("options", settings.get("options", {}), Mapping, "a dictionary of the environment's options")
    options = dict(settings.get("options", {}))
    if WRAPPERS in settings:
        options[WRAPPERS] = settings.pop(WRAPPERS)
    if env is None and not options:
        return request
    name, options = resolve_env("minimaze" if env is None else env, options)
    if options:
        settings["options"] = options
    return replace(request, env=None if env is None else name, settings=settings)


def _train_here(run: OpenedRun, device: str, watcher: Watcher) -> RunResult:
    """Train all learners of a run in this process."""
    resources = plan_resources(device, len(run.plans))
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(resources.torch_threads)
        learners = []
        for plan in run.plans:
            learner = build_learner(run.config, plan, resources)
            cleanup.callback(_close_learner, learner)
            learners.append(learner)
        lock = cleanup.enter_context(own_run(run.folder))  # before reading the checkpoints to resume from
        cleanup.callback(run.callbacks.on_end, "failed")  # no effect if the run has ended otherwise
        writer = RunWriter(run, lock, watcher.on_row)
        for learner in learners:
            if checkpoint := latest_checkpoint(run.folder.checkpoints_of(learner.name), is_quiet=True):
                resume_learner(learner, checkpoint)
        agent = writer.start(learners[0].env.spec)
        for learner in learners:
            writer.rewind(learner.name, learner.env_steps)
        scorer = RunScorer(agent, run.config, run.folder, resources, lock.check)
        watcher.on_start(sum(plan.steps for plan in run.plans), dict(writer.env_steps))
        for request in writer.pending_scores():
            writer.write_scores(request, result_of(scorer.score_request(request)))
        generators = {}
        for learner in learners:
            generators[learner.name] = train_learner(
                learner,
                scorer.score_learner,
                writer.write_row,
                run.folder.checkpoints_of(learner.name),
                watcher.should_stop,
                writer.report_checkpoint,
            )
        errors = run_pipeline(generators, LocalPermits(resources.updates_at_once))
        diverged = tuple(name for name, error in errors.items() if isinstance(error, Diverged))
        failed = {name: error for name, error in errors.items() if name not in diverged}
        if len(failed) == len(learners):
            raise next(iter(failed.values()))
        for name, error in failed.items():
            run.folder.log_failure(name, "".join(traceback.format_exception(error)))
        if writer.is_complete and agent.consensus is not None:
            ensemble = ScoreRequest(run.folder.path, None, 0, None, writer.has_new_vote)
            writer.write_scores(ensemble, result_of(scorer.score_request(ensemble)))
        return writer.finish(diverged, tuple(f"{name}: {error_line(error)}" for name, error in failed.items()))


def _close_learner(learner: Learner) -> None:
    """Close the games of a learner; print an error instead of raising it, so that cleanup continues."""
    try:
        learner.close()
    except Exception as error:
        notify(f"expgen: {learner.name} could not close its game: {printable(error_line(error))}")
