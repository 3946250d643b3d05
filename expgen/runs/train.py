"""train: a config → learners side by side → checkpoints, metrics and scores in a run folder."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from expgen.envs.make import check_trusted, named_env
from expgen.envs.wrappers import WRAPPERS
from expgen.errors import check_range, error_line
from expgen.evaluation.evaluate import result_of
from expgen.runs.make_config import OpenedRun, RunRequest, open_run
from expgen.runs.plan import build_learner
from expgen.runs.processes import run_in_processes
from expgen.runs.progress import watched
from expgen.runs.result import RunResult
from expgen.runs.run_lock import own_run
from expgen.runs.scoring import RunScorer
from expgen.runs.writer import RunWriter
from expgen.settings import check_location, check_type
from expgen.storage.location import Location, is_url
from expgen.storage.workspace import workspace
from expgen.text import printable
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
    """Train a policy, or several side by side, and write checkpoints, metrics and scores to a run folder.

    env: environment to train on, as `make_env` takes it: a name, an environment, or what makes one (default minimaze).
    algo: what learns; ppo by default, with preset="best" openend.
    preset: scale of the run, one of PRESETS.
    run: run folder or URL.
    device: auto, cpu, cuda or cuda:N.
    processes: number of worker processes that share the learners; 1 is this process, `auto` several on a GPU with
        cores to spare. Workers are new Python processes: they know what modules register, not what a script does.
    hang_seconds: a learner whose games take longer for one step, or its minibatch, is ended and the others go on; they
        train in worker processes then. 0: there is no limit, as a debugger needs it.
    resume: continue the run that is in the folder; only what RESUMABLE in make_config.py names may be raised.
    take_over: continue it even if another process of this machine trains it now; that process stops.
    quiet: show no progress; without it there is a bar, but only on a terminal or in a notebook.
    log: tools that follow the run beside TensorBoard, which always does: `wandb`, `mlflow`.
    callbacks: objects with methods of Callback, which are told of updates, scores, checkpoints and the end.
    on_start, on_row: called with the total steps and those done, then with each row of metrics.
    should_stop: asked after each rollout; True saves a checkpoint and returns.
    settings: fields of TrainConfig and of the configs inside it; `options` are those of the environment, `wrappers` its
        Gymnasium wrappers.

    Ctrl-C finishes the rollouts under way, writes checkpoints and returns what there is (`is_complete` is False); a
    second one raises KeyboardInterrupt at once.
    """
    for name, text in (("algo", algo), ("preset", preset)):
        check_type(name, text, (str, type(None)), "a name; see expgen train --help")
    for name, flag in (("resume", resume), ("take_over", take_over), ("quiet", quiet)):
        check_type(name, flag, bool, "True or False")
    if run is not None:
        check_location("run", run)
    request = RunRequest(env, algo, preset, run, resume, take_over, settings, log, callbacks)
    with watched(Watcher(on_start, on_row, should_stop), quiet) as watcher:
        (result,) = train_together([request], str(resolve_device(device)), processes, hang_seconds, watcher)
    if not (quiet or result.is_complete or result.diverged or result.failed):
        go_on = f"expgen.train(run={str(run or result.folder.path)!r}, resume=True)"
        print(f"expgen: stopped; go on with: {go_on}", file=sys.stderr)
    return result


def train_together(
    requests: Sequence[RunRequest],
    device: str = "auto",
    processes: int | str = 1,
    hang_seconds: float = 0.0,
    watcher: Watcher | None = None,
) -> list[RunResult]:
    """Train several runs, whose learners share the worker processes; in one process, run after run.

    `device`, `processes` and `hang_seconds` are those of `train`. Learners of several runs side by side are told of as
    `RUN/LEARNER`. A stop may leave the last runs without a result.
    """
    check_processes(processes)
    check_type("--hang-seconds", hang_seconds, (int, float), "seconds, or 0 for no limit")
    check_range("--hang-seconds", hang_seconds, 0, sys.maxsize)
    watcher = watcher or Watcher()
    with contextlib.ExitStack() as cleanup:
        runs = []
        for request in requests:
            run, should_stop = _opened(cleanup, request, watcher.should_stop)
            watcher = replace(watcher, should_stop=should_stop)
            runs.append(run)
        workers = num_workers(processes, device, sum(run.check_can_go_on() for run in runs))
        if workers > 1 or hang_seconds:
            return run_in_processes(runs, device, workers, watcher, hang_seconds)
        results: list[RunResult] = []
        for request, run in zip(requests, runs, strict=True):
            if results and watcher.should_stop():
                break
            if results and not is_url(request.run):  # it was opened hours ago, perhaps: others may have begun it
                open_run(_named(request))
            results.append(_run(run, device, watcher))
        return results


def _opened(
    cleanup: contextlib.ExitStack, request: RunRequest, should_stop: Callable[[], bool]
) -> tuple[OpenedRun, Callable[[], bool]]:
    """A run that may begin, and when it should stop; `cleanup` brings what lies at a URL there in the end."""
    request = _named(request)
    check_loggers(request.log)
    check_callbacks(request.callbacks)
    name = str(request.run).rpartition("/")[2]
    if is_url(request.run):
        open_run(request)  # before the URL is taken over
        space = cleanup.enter_context(workspace(str(request.run)))
        request, should_stop = replace(request, run=space.folder), space.stop_when_taken_over(should_stop)
    run = open_run(request)
    check_trusted(run.config.env, run.config.options)
    loggers = [TensorBoardEvents(run.folder.events_folder), *(LOGGERS[name]() for name in request.log)]
    return replace(run, name=name, callbacks=Callbacks([*loggers, *request.callbacks])), should_stop


def _named(request: RunRequest) -> RunRequest:
    """The environment and its options as files keep them; what the user names in them is trusted from here on."""
    settings, env = dict(request.settings), request.env
    check_type("options", settings.get("options", {}), Mapping, "a dictionary of the environment's options")
    options = dict(settings.get("options", {}))
    options |= {WRAPPERS: settings.pop(WRAPPERS)} if WRAPPERS in settings else {}
    if env is None and not options:
        return request
    name, options = named_env("minimaze" if env is None else env, options)
    settings |= {"options": options} if options else {}
    return replace(request, env=None if env is None else name, settings=settings)


def _run(run: OpenedRun, device: str, watcher: Watcher) -> RunResult:
    """All learners in this process."""
    resources = plan_resources(device, len(run.plans))
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(resources.torch_threads)
        learners = []
        for plan in run.plans:
            learner = build_learner(run.config, plan, resources)
            cleanup.callback(_close, learner)
            learners.append(learner)
        lock = cleanup.enter_context(own_run(run.folder))  # before the checkpoints that it resumes from are read
        cleanup.callback(run.callbacks.on_end, "failed")  # unless it has ended otherwise
        writer = RunWriter(run, lock, watcher.on_row)
        for learner in learners:
            if checkpoint := latest_checkpoint(run.folder.checkpoints_of(learner.name), is_quiet=True):
                resume_learner(learner, checkpoint)
        agent = writer.open(learners[0].env.spec)
        for learner in learners:
            writer.begin(learner.name, learner.env_steps)
        scorer = RunScorer(agent, run.config, run.folder, resources, lock.check)
        watcher.on_start(sum(plan.steps for plan in run.plans), dict(writer.env_steps))
        for request in writer.left_to_score():  # by worker processes of an earlier session
            writer.scored(request, result_of(scorer.answer(request)))
        generators = {}
        for learner in learners:
            checkpoints = run.folder.checkpoints_of(learner.name)
            told = (scorer.score_learner, writer.row, checkpoints, watcher.should_stop, writer.saved)
            generators[learner.name] = train_learner(learner, *told)
        errors = run_pipeline(generators, LocalPermits(resources.updates_at_once))
        diverged = tuple(name for name, error in errors.items() if isinstance(error, Diverged))
        failed = {name: error for name, error in errors.items() if name not in diverged}
        if len(failed) == len(learners):
            raise next(iter(failed.values()))
        for name, error in failed.items():
            run.folder.log_failure(name, "".join(traceback.format_exception(error)))
        if writer.is_complete and agent.consensus is not None:
            scorer.score_ensemble()
        return writer.conclude(diverged, tuple(f"{name}: {error_line(error)}" for name, error in failed.items()))


def _close(learner: Learner) -> None:
    """A game that fails on its way out too takes nobody along."""
    try:
        learner.close()
    except Exception as error:  # whatever it raises
        print(f"expgen: {learner.name} could not close its game: {printable(error_line(error))}", file=sys.stderr)
