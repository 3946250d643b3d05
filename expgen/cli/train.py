"""expgen train [GAME,GAME…] --algo A: train, show progress, stop cleanly when told to."""

import argparse
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from expgen.agents.consensus import ConsensusConfig
from expgen.algorithms.recipes import RECIPES, recipe_of
from expgen.cli.banner import device_line, run_lines
from expgen.cli.config_file import ConfigFile
from expgen.cli.flags import Parser, add_config_flags, parse_options, place
from expgen.cli.outcome import outcome
from expgen.cli.several import arguments_of_each
from expgen.cli.shared_flags import add_engine_flags, env_name, pop_engine
from expgen.cluster.task import Task
from expgen.envs.wrappers import WRAPPERS, wrappers_text
from expgen.errors import check_range
from expgen.runs.config import EXPLORER, default_config
from expgen.runs.folder import RunFolder
from expgen.runs.open_run import RunRequest, open_run
from expgen.runs.plan import plans_of
from expgen.runs.presets import PRESETS, default_algo
from expgen.runs.stop import StopSignals
from expgen.runs.train import RunResult, train_together
from expgen.runs.watch import Watch
from expgen.settings import parts_of
from expgen.storage.location import Location, absolute, is_url
from expgen.storage.view import View
from expgen.text import printable
from expgen.training.life import Watcher
from expgen.training.loggers import check_loggers
from expgen.training.resources import check_processes

COMMON = "algo env config preset run resume take-over device levels seed members steps envs"  # flags that --help shows


def main(argv: Sequence[str]) -> int:
    """Parse, train, say where it is and how to go on."""
    file = ConfigFile(argv)
    parser = _parser(_algo_of(file.early_words))
    asked = list(arguments_of_each(parser, file.words_for(parser)))
    is_local = asked[0]["engine"] == "local"
    engine, *_ = [pop_engine(arguments) for arguments in asked]
    where_to, *_ = [{name: arguments.pop(name) for name in ("device", "processes")} for arguments in asked]
    hang_seconds, *_ = [arguments.pop("hang_seconds") for arguments in asked]
    check_processes(where_to["processes"])
    check_range("--hang-seconds", hang_seconds, 0, sys.maxsize)
    runs = [_opened(arguments) for arguments in asked]
    shares = [runs] if is_local else [[run] for run in runs]  # one machine's pool for all, or what a cluster places
    tasks = [
        Task(
            ", ".join(run.name for run in share),
            partial(_train, share, {**where_to, "hang_seconds": hang_seconds}),
            run=share[0].request.run,
        )
        for share in shares
    ]
    results: dict[str, RunResult] = {}
    num_learners = sum(run.num_learners for run in runs)
    banner = [line for run in runs for line in run.banner]
    watch = Watch(banner=[*banner, device_line(is_local, **where_to, num_learners=num_learners)])
    with StopSignals(still_to_do=watch.still_to_do) as signals:
        try:
            for ended in engine.run(tasks, Watcher(watch.start, watch.row, signals.arrived)):
                results |= ended.result()
        finally:
            watch.close()
    statuses = [_conclude(run.where, results.get(str(run.where)), signals.number) for run in runs]
    return 1 if 1 in statuses else max(statuses)


class _Run(NamedTuple):
    """One run that is asked for."""

    where: Location
    request: RunRequest
    num_learners: int
    banner: list[str]

    @property
    def name(self) -> str:
        return str(self.where).rpartition("/")[2]


def _opened(arguments: dict[str, Any]) -> _Run:
    """What the flags ask for, looked at once before anything begins."""
    options = parse_options(arguments.pop("option"))
    if wrappers := arguments.pop("wrapper"):
        options[WRAPPERS] = wrappers_text(wrappers)
    if options:
        arguments["options"] = options
    arguments["env"] = env_name(arguments.pop("game"), arguments["env"])
    if arguments["resume"] and arguments["run"] and not (arguments["env"] or arguments["algo"]):
        _looked_at(arguments["run"]).read_config()  # nothing says what to start where there is no run
    named = {name: arguments.pop(name) for name in ("env", "algo", "preset", "run", "resume", "take_over", "log")}
    check_loggers(named["log"])
    request = RunRequest(**named, settings=arguments)
    opened = open_run(request)
    where = request.run if request.run and is_url(request.run) else opened.folder.path
    again = replace(request, resume=True, take_over=True, run=absolute(where))  # a task may be begun again
    return _Run(where, again, len(plans_of(opened.config)), run_lines(opened, where))


def _train(runs: Sequence[_Run], where_to: Mapping[str, Any], watcher: Watcher) -> dict[str, RunResult]:
    """Results by where the runs are; those that a stop kept from beginning have none."""
    results = train_together([run.request for run in runs], **where_to, watcher=watcher)
    return {str(run.where): result for run, result in zip(runs, results, strict=False)}


def _conclude(where: Location, result: RunResult | None, signal_number: int | None) -> int:
    """`result` is None where a stop came before the run had begun."""
    if result is not None and result.failed:
        what = printable("; ".join(result.failed))
        print(f"expgen: {what}; continue with: expgen train --resume --run {where}", file=sys.stderr)
        return 1
    if result is not None and result.diverged:
        print(f"expgen: {', '.join(result.diverged)} diverged; the last good checkpoint is in {where}", file=sys.stderr)
        return 1
    if result is None or not result.is_complete:
        print(f"expgen: stopped; continue with: expgen train --resume --run {where}", file=sys.stderr)
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
    first.add_argument("--preset")
    first.add_argument("--run", type=place)
    first.add_argument("--resume", action="store_true")
    known, _ = first.parse_known_args(argv)
    if known.algo is None and known.resume and known.run and (folder := _looked_at(known.run)).exists():
        return folder.read_config()[0].algo
    algo = known.algo or default_algo(known.preset)
    recipe_of(algo)
    return algo


def _parser(algo: str) -> Parser:
    config = default_config(algo)
    parser = Parser(
        "train",
        common=frozenset(f"--{name}" for name in COMMON.split()),
        more="Algorithms: " + "; ".join(f"{name} ({recipe.summary})" for name, recipe in RECIPES.items()),
        description="Train a policy, or several side by side, on a set of levels.",
        epilog=f"Settings shown are those of --algo {algo}, defaults the paper's; --preset changes some of them. "
        "Every setting of an algorithm: expgen train --algo A --help all.",
    )
    parser.add_argument(
        "game",
        nargs="?",
        metavar="GAME",
        help="a ProcGen game or any other name of an environment; several with commas, as --seed may be: a run of each",
    )
    parser.add_argument(
        "--algo", default=None, help=f"what learns: {', '.join(RECIPES)} (default ppo; with --preset best openend)"
    )
    parser.add_argument("--env", default=None, help="minimaze, procgen, gymnasium:ID, envpool:ID or your own")
    parser.add_argument("--option", action="append", default=[], metavar="K=V", help="an option of the environment")
    parser.add_argument(
        "--wrapper",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="a Gymnasium wrapper, with arguments as in MODULE:CLASS(size=64); several go on in their order",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="flags from a YAML or JSON file, as a run's config.json; those given here win",
    )
    parser.add_argument("--preset", choices=tuple(PRESETS), help="scale (default paper on ProcGen, laptop elsewhere)")
    parser.add_argument("--run", type=place, metavar="DIR", help="folder or URL (default runs/GAME-ALGO-seedN)")
    parser.add_argument("--resume", action="store_true", help="continue the run in DIR, if there is one")
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="continue it even if another process of this machine trains it; that process stops",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default auto)")
    parser.add_argument(
        "--processes", default="auto", metavar="N", help="worker processes that learners are spread over, or auto"
    )
    parser.add_argument(
        "--hang-seconds", type=float, default=0.0, metavar="S", help="end a learner, in a worker process, whose games "
        "or minibatch take longer than this (default 0: wait for ever)",
    )  # fmt: skip
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="TOOL",
        help="follow the run in wandb or mlflow too",
    )
    add_engine_flags(parser)
    add_config_flags(parser, config, "run", leave_out=("algo", "env", "options"))
    for name, part in parts_of(config).items():
        if name != EXPLORER:
            add_config_flags(parser, part, name)
    if config.explorer is not None:
        add_config_flags(parser, ConsensusConfig(), "agent (kept in agent.json)")
        add_config_flags(parser, config.explorer, EXPLORER, prefix=f"{EXPLORER}_")
        for name, part in parts_of(config.explorer).items():
            add_config_flags(parser, part, f"{EXPLORER}'s {name}", prefix=f"{EXPLORER}_")
    return parser
