"""expgen reproduce NAME: train, evaluate and report a table or figure of the paper."""

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from expgen.cli.flags import Parser, add_engine_flags, location, pop_engine
from expgen.cluster.engine import Engine
from expgen.errors import InputError, check_choice
from expgen.paper import numbers
from expgen.paper.exhibits import EXHIBITS, exhibit
from expgen.reproduce.estimate import Estimator
from expgen.reproduce.job import JobResult
from expgen.reproduce.jobs import jobs_of
from expgen.reproduce.reproduce import reproduce
from expgen.reproduce.scale import SCALES
from expgen.runs.progress import Progress
from expgen.runs.stop import StopSignals
from expgen.storage.location import is_url
from expgen.text import notify
from expgen.training.loop import Watcher


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "reproduce",
        description="Finished jobs are skipped.",
        epilog="--scale smoke and laptop use the built-in maze instead of ProcGen's games; paper uses ProcGen.",
    )
    parser.add("name", "tables and figures (see --list), or all", nargs="*", metavar="NAME")
    parser.add("--list", "list names with content, jobs, steps and estimated hours on this machine", False)
    parser.add("--scale", "scale of the experiments", "laptop", choices=tuple(SCALES))
    out = "folder or URL for runs, scores and report (default reproduction/SCALE)"
    parser.add("--out", out, type=location, metavar="DIR")
    parser.add("--games", "use only these games; needs --scale paper", metavar="A,B")
    parser.add("--device", "device to train on: auto, cpu, cuda or cuda:N", "auto")
    add_engine_flags(parser)
    arguments = parser.parse_args(argv)
    engine = pop_engine(vars(arguments))
    names = _exhibit_names(arguments.name, arguments.list)
    games = None
    if arguments.games is not None:
        games = [check_choice("--games", game, numbers.games()) for game in arguments.games.split(",")]
        _check_games(games, names, arguments.scale)
    if arguments.list:
        return _list(names, arguments.scale, games, arguments.device)
    return _run(names, games, engine, arguments)


def _check_games(games: Sequence[str], names: Sequence[str], scale_name: str) -> None:
    """Raise InputError if the scale uses the built-in maze, or if no job uses these games."""
    if scale_name != "paper":
        raise InputError(f"--games picks games of ProcGen but --scale is {scale_name}; accepted: --scale paper")
    jobs = jobs_of(names, SCALES[scale_name])
    if jobs and not jobs_of(names, SCALES[scale_name], games):
        played = ", ".join(dict.fromkeys(job.env.removeprefix("procgen:") for job in jobs))
        raise InputError(f"--games is {','.join(games)}; accepted for {', '.join(names)}: {played}")


def _exhibit_names(given: Sequence[str], is_list: bool) -> list[str]:
    if "all" in given or (is_list and not given):
        return list(EXHIBITS)
    if not given:
        raise InputError(f"NAME is missing; accepted: all, {', '.join(EXHIBITS)}")
    return [exhibit(name).name for name in dict.fromkeys(given)]


def _list(names: Sequence[str], scale_name: str, games: Sequence[str] | None, device: str) -> int:
    scale, estimator = SCALES[scale_name], Estimator(device)
    print(f"{'name':<10}  {'jobs':>5}  {'steps':>15}  {'hours':>9}  what ({scale_name} scale)")
    refused: dict[str, None] = {}
    for name in names:
        effort = estimator.effort(jobs_of([name], scale, games))
        hours = "?" if effort.hours is None else f"{effort.hours:,.2f}" if effort.hours < 10 else f"{effort.hours:,.0f}"
        note = " (some jobs refused)" if effort.refused else ""
        print(
            f"{name:<10}  {effort.jobs:>5}  {effort.steps:>15,}  {hours:>9}  {EXHIBITS[name].shows}{note}", flush=True
        )
        refused |= dict.fromkeys(effort.refused)
    for line in refused:
        print(f"refused: {line}")
    print("Tables and figures share runs if --out is the same.")
    print("Hours: training at the speed of PPO and the explorer, measured now; others relative to PPO.")
    return 0


def _run(names: Sequence[str], games: Sequence[str] | None, engine: Engine, arguments: Namespace) -> int:
    def print_result(result: JobResult) -> None:
        progress.close()
        line = f"{result.job.name}: {result.status}"
        line += f": {result.message}" if result.message else ""
        line += f" in {result.seconds:.0f} s" if result.status == "done" else ""
        notify(line)

    progress, scale, device = Progress(), SCALES[arguments.scale], arguments.device
    out = arguments.out or Path("reproduction") / arguments.scale
    with StopSignals(when_stopping=progress.when_stopping) as signals, progress:
        watcher = Watcher(progress.start, progress.row, signals.arrived)
        page, errors = reproduce(names, scale, out, engine, games, device, watcher, print_result)
    if signals.number is not None:
        print(f"expgen: {errors[-1] if errors else 'stopped'}", file=sys.stderr)
        return 128 + signals.number
    if page is not None:
        print(f"done: {out}  (expgen fetch {out} DIR downloads {page.name})" if is_url(out) else f"done: {page}")
    if errors:
        print(f"expgen: {len(errors)} jobs or figures failed; the first error: {errors[0]}", file=sys.stderr)
        return 1
    return 0
