"""expgen train [GAME,GAME…] --algo A: train, show progress, stop cleanly when told to."""

import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from expgen.cli.config_file import SHARED
from expgen.cli.flags import env_name, parse_options, pop_engine
from expgen.cli.summary import device_line, outcome, run_lines
from expgen.cli.train_flags import each_run, parsed
from expgen.cluster.engine import Task
from expgen.envs.wrappers import WRAPPERS, wrappers_text
from expgen.errors import InputError, check_range, error_line
from expgen.plugins import known_plugins
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import RunRequest, open_run
from expgen.runs.progress import Progress
from expgen.runs.status import newest_checkpoint_steps
from expgen.runs.stop import StopSignals
from expgen.runs.train import RunResult, train_runs
from expgen.storage.location import Location, absolute, is_url
from expgen.storage.view import local_copy
from expgen.text import printable
from expgen.training.loggers import check_loggers
from expgen.training.loop import Watcher
from expgen.training.resources import check_processes


def main(argv: Sequence[str]) -> int:
    """Parse, train, say where it is and how to go on."""
    asked = parsed(argv)
    where_to = {name: arguments.pop(name) for arguments in asked for name in SHARED}  # the same for each
    is_local = where_to["engine"] == "local"
    engine = pop_engine(where_to)
    check_processes(where_to["processes"])
    check_range("--hang-seconds", where_to["hang_seconds"], 0, sys.maxsize)
    each = [one for arguments in asked for one in each_run(arguments)]
    _check_meant(each)
    runs = [_opened(one) for one in each]
    places = [str(run.where) for run in runs]
    if twice := [place for place in places if places.count(place) > 1]:
        raise InputError(f"two runs would be in {twice[0]}; accepted: names that make folders of their own")
    banner = [line for run in runs for line in run.banner]
    num_learners = sum(run.num_learners for run in runs)
    device = device_line(is_local, where_to["device"], where_to["processes"], num_learners)
    progress = Progress(banner=[*banner, device])
    with StopSignals(when_stopping=progress.when_stopping) as signals, progress:
        results: dict[str, RunResult] = {}
        failed: dict[str, Exception] = {}
        together = [runs] if is_local else [[run.begun_again()] for run in runs]
        tasks = [Task(part[0].name, partial(_train, part, where_to), run=part[0].request.run) for part in together]
        for ended in engine.run(tasks, Watcher(progress.start, progress.row, signals.arrived)):
            if is_local or ended.error is None:
                results |= ended.result()
            else:  # of one job; the others go on
                failed[ended.task.name] = ended.error
    statuses = [_conclude(run, results.get(str(run.where)), signals.number) for run in runs if run.name not in failed]
    for name, error in failed.items() if len(runs) > 1 else ():
        print(f"expgen: {name} failed: {printable(error_line(error))}", file=sys.stderr)
    if failed:
        raise next(iter(failed.values()))
    return 1 if 1 in statuses else max(statuses)


class _Run(NamedTuple):
    """One run that is asked for."""

    where: Location
    request: RunRequest
    num_learners: int  # with steps left
    banner: list[str]

    @property
    def name(self) -> str:
        return str(self.where).rpartition("/")[2]

    def begun_again(self) -> "_Run":
        """As a cluster begins it, again where a machine was lost that may still write."""
        return self._replace(request=replace(self.request, resume=True, take_over=True))


def _check_meant(asked: Sequence[Mapping[str, Any]]) -> None:
    """InputError where nothing says what to start and there is no run to resume either."""
    bare = [one["run"] for one in asked if one["resume"] and not (one["game"] or one["env"] or one["algo"])]
    if bare and all(bare) and not any(_looked_at(run).exists() for run in bare):
        _looked_at(bare[0]).read_config()


def _opened(arguments: dict[str, Any]) -> _Run:
    """What the flags ask for, looked at once before anything begins."""
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


def _train(runs: Sequence[_Run], where_to: Mapping[str, Any], watcher: Watcher) -> dict[str, RunResult]:
    """Results by where the runs are; those that a stop kept from beginning have none."""
    results = train_runs([run.request for run in runs], **where_to, watcher=watcher)
    return {str(run.where): result for run, result in zip(runs, results, strict=False)}


def _conclude(run: _Run, result: RunResult | None, signal_number: int | None) -> int:
    """`result` is None where a stop came before the run had begun."""
    where = run.where
    if result is None:
        print(f"expgen: {where} was not begun; continue with: the same command and --resume", file=sys.stderr)
        return 128 + (signal_number or signal.SIGINT)
    go_on = f"continue with: {shlex.join(['expgen', 'train', '--resume', '--run', str(where), *_imports()])}"
    if result.failed:
        print(f"expgen: {printable('; '.join(result.failed))}; {go_on}", file=sys.stderr)
        return 1
    if result.diverged:
        print(f"expgen: {', '.join(result.diverged)} diverged; the last good checkpoint is in {where}", file=sys.stderr)
        return 1
    if not result.is_complete:
        print(f"expgen: stopped; {go_on}", file=sys.stderr)
        return 128 + (signal_number or signal.SIGINT)
    print(f"done: {where}  (scores in {result.folder.scores_file.name}, curves in {result.folder.metrics_file.name})")
    for line in outcome(_looked_at(where)):
        print(line)
    return 0


def _imports() -> Iterator[str]:
    """Flags that name the modules of the user's own again, a file of its own by its path."""
    known = known_plugins()
    for module in known.modules:
        file = getattr(sys.modules.get(module), "__file__", None)
        yield from ("--import", file if file and str(Path(file).parent) in known.folders else module)


def _looked_at(where: Location) -> RunFolder:
    """For its config and rows."""
    return RunFolder(local_copy(where, without_weights=True))
