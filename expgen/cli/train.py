"""expgen train [GAME] --algo A: train, show progress, stop cleanly when told to."""

import signal
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from expgen.algorithms.algorithm import RECIPES, recipe_of
from expgen.cli.engine import add_engine_flags, pop_engine
from expgen.cli.environment import env_name
from expgen.cli.flags import Parser, add_config_flags, parse_options, place
from expgen.cli.outcome import outcome
from expgen.cli.watch import Watch
from expgen.cluster.stop import StopSignals
from expgen.cluster.task import Task, Watcher
from expgen.runs.config import EXPLORER, default_config
from expgen.runs.config_tree import parts_of
from expgen.runs.folder import RunFolder
from expgen.runs.open_run import open_run
from expgen.runs.presets import PRESETS
from expgen.runs.train import RunResult, train
from expgen.storage.location import Location, absolute, is_url
from expgen.storage.view import View


def main(argv: Sequence[str]) -> int:
    """Parse, train, say where it is and how to go on."""
    arguments = vars(_parser(_algo_of(argv)).parse_args(argv))
    options = parse_options(arguments.pop("option"))
    if options:
        arguments["options"] = options
    arguments["env"] = env_name(arguments.pop("game"), arguments["env"])
    if arguments["resume"] and arguments["run"] and not (arguments["env"] or arguments["algo"]):
        _looked_at(arguments["run"]).read_config()  # nothing says what to start where there is no run
    engine, device = pop_engine(arguments), arguments.pop("device")
    opened, _ = open_run(**arguments)
    where = arguments["run"] if is_url(arguments["run"]) else opened.path
    arguments |= {"resume": True, "run": absolute(where)}  # a task may be begun again
    arguments["adopt"] = [absolute(run) if is_url(run) or Path(run).exists() else run for run in arguments["adopt"]]
    name = str(where).rpartition("/")[2]
    task = Task(name, partial(_train, {**arguments, "device": device}), run=arguments["run"])
    with StopSignals() as signals:
        watch = Watch()
        try:
            ended = list(engine.run([task], Watcher(watch.start, watch.row, signals.arrived)))
        finally:
            watch.close()
    return _conclude(where, ended[0].result() if ended else None, signals.number)


def _train(arguments: Mapping[str, Any], watcher: Watcher) -> RunResult:
    return train(**arguments, on_start=watcher.on_start, on_row=watcher.on_row, should_stop=watcher.should_stop)


def _conclude(where: Location, result: RunResult | None, signal_number: int | None) -> int:
    """`result` is None where a stop came before the run had begun."""
    if result is not None and result.diverged:
        print(f"expgen: {', '.join(result.diverged)} diverged; the last good checkpoint is in {where}", file=sys.stderr)
        return 1
    if result is None or not result.is_complete:
        print(f"expgen: stopped; go on with: expgen train --resume --run {where}", file=sys.stderr)
        return 128 + (signal_number or signal.SIGINT)
    print(f"done: {where}  (scores in {result.folder.scores_file.name}, curves in {result.folder.metrics_file.name})")
    for line in outcome(_looked_at(where)):
        print(line)
    return 0


def _looked_at(where: Location) -> RunFolder:
    """For its config and rows."""
    return RunFolder(View(where).refresh())


def _algo_of(argv: Sequence[str]) -> str:
    """Which algorithm's settings the flags are: named, or that of the run to resume."""
    first = Parser("train", add_help=False)
    first.add_argument("--algo")
    first.add_argument("--run", type=place)
    first.add_argument("--resume", action="store_true")
    known, _ = first.parse_known_args(argv)
    if known.algo is None and known.resume and known.run and (folder := _looked_at(known.run)).exists():
        return folder.read_config()[0].algo
    recipe_of(known.algo or "ppo")
    return known.algo or "ppo"


def _parser(algo: str) -> Parser:
    config = default_config(algo)
    parser = Parser(
        "train",
        description="Train on a set of levels. Algorithms: "
        + "; ".join(f"{name} ({recipe.summary})" for name, recipe in RECIPES.items()),
        epilog=f"Settings shown are those of --algo {algo}, defaults the paper's; --preset changes some of them. "
        "Other algorithms have other settings: expgen train --algo A --help.",
    )
    parser.add_argument("game", nargs="?", metavar="GAME", help="a ProcGen game; else minimaze or what --env says")
    parser.add_argument("--algo", default=None, help="what learns (default ppo)")
    parser.add_argument("--env", default=None, help="minimaze, procgen, gymnasium:ID or envpool:ID")
    parser.add_argument("--option", action="append", default=[], metavar="K=V", help="an option of the environment")
    parser.add_argument("--preset", choices=tuple(PRESETS), help="scale (default paper on ProcGen, laptop elsewhere)")
    parser.add_argument("--run", type=place, metavar="DIR", help="folder or URL (default runs/GAME-ALGO-seedN)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in DIR, if there is one")
    parser.add_argument(
        "--adopt", action="append", default=[], metavar="RUN", help="a run, or an agent that ships, whose policies join"
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default auto)")
    add_engine_flags(parser)
    add_config_flags(parser, config, "run", leave_out=("algo", "env", "options"))
    for name, part in parts_of(config).items():
        if name != EXPLORER:
            add_config_flags(parser, part, name)
    if config.explorer is not None:
        add_config_flags(parser, config.explorer, EXPLORER, prefix=f"{EXPLORER}_")
        for name, part in parts_of(config.explorer).items():
            add_config_flags(parser, part, f"{EXPLORER}'s {name}", prefix=f"{EXPLORER}_")
    return parser
