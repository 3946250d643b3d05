"""expgen train [GAME,GAME…] --algo A: train runs, show progress, checkpoint and stop on a signal."""

import shlex
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from expgen.cli.config_file import SHARED
from expgen.cli.flags import env_name, parse_options, pop_engine
from expgen.cli.summary import device_line, outcome, run_lines
from expgen.cli.train_flags import expand_runs, parse_runs
from expgen.cluster.engine import Task
from expgen.envs.wrappers import WRAPPERS, wrappers_text
from expgen.errors import InputError, check_range, error_line
from expgen.plugins import known_plugins
from expgen.runs.current_scores import current_scores
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import RunRequest, open_run
from expgen.runs.progress import Progress
from expgen.runs.status import newest_checkpoint_steps
from expgen.runs.stop import StopSignals
from expgen.runs.train import RunResult, train_runs
from expgen.storage.location import Location, absolute, is_url
from expgen.storage.view import local_copy
from expgen.text import notify, printable
from expgen.training.loggers import check_loggers
from expgen.training.loop import Watcher
from expgen.training.resources import check_processes


def main(argv: Sequence[str]) -> int:
    parsed = parse_runs(argv)
    shared = {name: arguments.pop(name) for arguments in parsed for name in SHARED}  # equal in all runs
    is_local = shared["engine"] == "local"
    engine = pop_engine(shared)
    check_processes(shared["processes"])
    check_range("--hang-seconds", shared["hang_seconds"], 0, sys.maxsize)
    each = [one for arguments in parsed for one in expand_runs(arguments)]
    _check_resume(each)
    runs = [_open(one) for one in each]
    folders = Counter(str(run.where) for run in runs)
    if repeated := [folder for folder, count in folders.items() if count > 1]:
        raise InputError(f"two runs have the folder {repeated[0]}; accepted: names that give different folders")
    banner = [line for run in runs for line in run.banner]
    num_learners = sum(run.num_learners for run in runs)
    device = device_line(is_local, shared["device"], shared["processes"], num_learners)
    progress = Progress(banner=[*banner, device])
    with StopSignals(when_stopping=progress.when_stopping) as signals, progress:
        results: dict[str, RunResult] = {}
        failed: dict[str, Exception] = {}
        groups = [runs] if is_local else [[run.for_cluster()] for run in runs]
        tasks = [Task(group[0].name, partial(_train, group, shared), run=group[0].request.run) for group in groups]
        for ended in engine.run(tasks, Watcher(progress.start, progress.row, signals.arrived)):
            if is_local or ended.error is None:
                results |= ended.result()
            else:  # the other jobs continue
                failed[ended.task.name] = ended.error
    ended_runs = [run for run in runs if run.name not in failed]
    statuses = [_print_outcome(run, results.get(str(run.where)), signals.number) for run in ended_runs]
    for name, error in failed.items() if len(runs) > 1 else ():
        notify(f"expgen: {name} failed: {printable(error_line(error))}")
    if failed:
        raise next(iter(failed.values()))
    return 1 if 1 in statuses else max(statuses)


class _Run(NamedTuple):
    """One run to train."""

    where: Location
    request: RunRequest
    num_learners: int  # that have steps left
    banner: list[str]

    @property
    def name(self) -> str:
        return str(self.where).rpartition("/")[2]

    def for_cluster(self) -> "_Run":
        """Return the run with --resume and --take-over: a lost node that ran it may still be writing."""
        return self._replace(request=replace(self.request, resume=True, take_over=True))


def _check_resume(runs: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError if --resume without a game, environment or algorithm names no existing run."""
    bare = [one["run"] for one in runs if one["resume"] and not (one["game"] or one["env"] or one["algo"])]
    if bare and all(bare) and not any(_run_folder(run).exists() for run in bare):
        _run_folder(bare[0]).read_config()  # raises InputError


def _open(arguments: dict[str, Any]) -> _Run:
    """Validate the arguments of one run before any run starts."""
    options = parse_options(arguments.pop("option"))
    if wrappers := arguments.pop("wrapper"):
        options[WRAPPERS] = wrappers_text(wrappers)
    if options:
        arguments["options"] = options
    arguments["env"] = env_name(arguments.pop("game"), arguments["env"])
    named = {name: arguments.pop(name) for name in ("env", "algo", "preset", "run", "resume", "take_over", "log")}
    check_loggers(named["log"])
    request = RunRequest(**named, settings=arguments)
    opened = open_run(request)
    where = request.run if request.run and is_url(request.run) else opened.folder.path
    request = replace(request, run=absolute(where))
    unfinished = [plan for plan in opened.plans if newest_checkpoint_steps(opened.folder, plan.name) < plan.steps]
    return _Run(where, request, len(unfinished), run_lines(opened, where))


def _train(runs: Sequence[_Run], shared: Mapping[str, Any], watcher: Watcher) -> dict[str, RunResult]:
    """Train `runs`; return results by location, without runs that a stop kept from starting."""
    results = train_runs([run.request for run in runs], **shared, watcher=watcher)
    return {str(run.where): result for run, result in zip(runs, results, strict=False)}


def _print_outcome(run: _Run, result: RunResult | None, signal_number: int | None) -> int:
    """Print how a run ended and return its exit status; `result` is None if the run did not start."""
    where = run.where
    if result is None:
        print(f"expgen: {where} was not started; continue with: the same command and --resume", file=sys.stderr)
        return 128 + (signal_number or signal.SIGINT)
    resume = f"continue with: {shlex.join(['expgen', 'train', '--resume', '--run', str(where), *_import_flags()])}"
    if result.failed:
        print(f"expgen: {printable('; '.join(result.failed))}; {resume}", file=sys.stderr)
        return 1
    if result.diverged:
        print(f"expgen: {', '.join(result.diverged)} diverged; the last good checkpoint is in {where}", file=sys.stderr)
        return 1
    if not result.is_complete:
        print(f"expgen: stopped; {resume}", file=sys.stderr)
        return 128 + (signal_number or signal.SIGINT)
    current = current_scores(_run_folder(where))
    scores = f"scores in {result.folder.scores_file.name}, " if current.scores else ""
    print(f"done: {where}  ({scores}curves in {result.folder.metrics_file.name})")
    for line in outcome(current):
        print(line)
    if current.unscored and not result.config.eval_every:
        each = ["--learner", "each"] if current.agent.consensus else []
        evaluate = shlex.join(["expgen", "evaluate", str(where), *each, *_import_flags()])
        print(f"not scored, since --eval-every is 0: {', '.join(current.unscored)}; score with: {evaluate}")
    return 0


def _import_flags() -> Iterator[str]:
    """Yield the --import flags of the user's modules; a file by its path."""
    known = known_plugins()
    for module in known.modules:
        file = getattr(sys.modules.get(module), "__file__", None)
        yield from ("--import", file if file and str(Path(file).parent) in known.folders else module)


def _run_folder(where: Location) -> RunFolder:
    """Return a folder with the config and rows of a run, which may be at a URL."""
    return RunFolder(local_copy(where, without_weights=True))
