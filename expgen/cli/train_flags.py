"""What `expgen train` is asked for: flags of the algorithm, a config file, and several runs by one command."""

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from expgen.agents.consensus import ConsensusConfig
from expgen.algorithms.recipes import RECIPES, recipe_of
from expgen.cli.config_file import as_text, read_config_file, take_runs, use_as_defaults
from expgen.cli.flags import (
    Parser,
    add_config_flags,
    add_engine_flags,
    env_name,
    folder,
    list_of,
    location,
    whole_number,
)
from expgen.envs.procgen import GAMES
from expgen.errors import InputError
from expgen.runs.config import EXPLORER, default_config
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import RUNS_FOLDER
from expgen.runs.presets import PRESETS, default_algo
from expgen.settings import nested_configs
from expgen.storage.location import join
from expgen.storage.view import local_copy

COMMON = "algo env config preset run resume take-over device levels seed members steps envs"  # flags that --help shows


def parsed(argv: Sequence[str]) -> list[dict[str, Any]]:
    """What flags and a config file ask for; several where the file names `runs`, each by flags of its algorithm."""
    path = _known_first(argv, {}).config
    if path is None:
        return [_parsed_run(argv, path, {})]
    values = read_config_file(path)
    return [_parsed_run(argv, path, {**values, **own}, name) for name, own in take_runs(path, values)]


def _parsed_run(argv: Sequence[str], path: Path | None, values: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """`values` are what the file `path` says of the run `name`, which is none where the file is of one alone."""
    known = _known_first(argv, values)
    algo = known.algo or _usual_algo(argv, values, known.preset)
    may_resume = known.resume or values.get("resume") is True
    if known.algo is None and may_resume and known.run and not name:
        there = RunFolder(local_copy(known.run, without_weights=True))
        algo = there.read_config()[0].algo if there.exists() else algo
    recipe_of(algo)
    parser = _parser(algo)
    if path:
        use_as_defaults(path, values, parser, argv)
    arguments = vars(parser.parse_args(argv))
    arguments.pop("config")
    return {**arguments, "name": name}


def _known_first(argv: Sequence[str], values: Mapping[str, Any]) -> argparse.Namespace:
    """The flags that decide which others there are; `values` are those of a file."""
    first = Parser("train", add_help=False)
    kinds: dict[str, Callable[[str], Any]] = {"config": folder, "algo": str, "preset": str, "run": location}
    for name, kind in kinds.items():
        first.add_argument(f"--{name}", type=kind)
    first.add_argument("--resume", action="store_true")
    first.set_defaults(**{flag: as_text(flag, values[flag]) for flag in ("algo", "preset", "run") if flag in values})
    return first.parse_known_args(argv)[0]


def _usual_algo(argv: Sequence[str], values: Mapping[str, Any], preset: str | None) -> str:
    """What `preset` trains on the games that flags or a file's `values` name; bad names are refused later."""
    if preset != "best":
        return default_algo(preset)
    given, _ = _parser(default_algo(preset)).parse_known_args(argv)
    said = vars(given) if given.game or given.env else values
    games, env = (as_text(name, said.get(name) or "") for name in ("game", "env"))
    known: list[str | None] = [game for game in games.split(",") if game in GAMES]
    algos = {default_algo(preset, env_name(game, env or None)): game for game in known or [None]}
    if len(algos) > 1:
        kinds = " and ".join(f"{game} ({algo})" for algo, game in algos.items())
        raise InputError(f"--preset {preset} is of different algorithms on {kinds}; accepted: one command for each")
    return next(iter(algos))


def each_run(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is asked of each run: GAME and --seed may be lists, and every game with every seed is a run.

    Below `--run`, which then is a folder of several, each has its own; so has one that a config file gives a name.
    """
    games, seeds = _each_once("GAME", arguments["game"]), _each_once("--seed", arguments.get("seed"))
    for seed, game in itertools.product(seeds, games):
        one = {**arguments, "game": game} | ({} if seed is None else {"seed": seed})
        name = one.pop("name")
        told_apart = (name, game if len(games) > 1 else None, f"seed{seed}" if len(seeds) > 1 else None)
        parts = [part for part in told_apart if part]
        if parts and (one["run"] or name):
            one["run"] = join(one["run"] or RUNS_FOLDER, "-".join(parts))
        yield one


def _each_once(what: str, given: Sequence[Any] | None) -> Sequence[Any]:
    """`given`, if nothing stands in it twice; where nothing is said, that."""
    if given is not None and len(set(given)) < len(given):
        raise InputError(f"{what} is {','.join(map(str, given))!r}; accepted: each of them once")
    return [None] if given is None else given


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
    games = "a ProcGen game or any other name of an environment; several with commas, as --seed may be: a run of each"
    parser.add("game", games, nargs="?", type=list_of(str), metavar="GAME")
    usual = "default ppo; with --preset best what is strongest on GAME"
    parser.add("--algo", f"what learns: {', '.join(RECIPES)} ({usual})")
    parser.add("--env", "minimaze, procgen, gymnasium:ID, envpool:ID or your own")
    parser.add("--option", "an option of the environment", [], metavar="K=V")
    wrapper = "a Gymnasium wrapper, with arguments as in MODULE:CLASS(size=64); several go on in their order"
    parser.add("--wrapper", wrapper, [], metavar="MODULE:CLASS")
    file = "flags from a YAML or JSON file, as a run's config.json, or of several runs; those given here win"
    parser.add("--config", file, metavar="FILE")
    parser.add("--preset", "scale (default paper on ProcGen, laptop elsewhere)", choices=tuple(PRESETS))
    parser.add("--run", "folder or URL (default runs/GAME-ALGO-seedN)", type=location, metavar="DIR")
    parser.add("--resume", "continue the run in DIR, if there is one", False)
    others = "continue it even if another process of this machine trains it; that process stops"
    parser.add("--take-over", others, False)
    parser.add("--device", "auto, cpu, cuda or cuda:N", "auto")
    parser.add("--processes", "worker processes that learners are spread over, or auto", "auto", metavar="N")
    hang = "end a learner, in a worker process, whose games or minibatch take longer than this; 0: wait for ever"
    parser.add("--hang-seconds", hang, 0.0, metavar="S")
    parser.add("--log", "follow the run in wandb or mlflow too", [], metavar="TOOL")
    add_engine_flags(parser)
    add_config_flags(parser, config, "run", leave_out=("algo", "env", "options"))
    parser._option_string_actions["--seed"].type = list_of(whole_number)
    for name, part in nested_configs(config).items():
        if name != EXPLORER:
            add_config_flags(parser, part, name)
    if config.explorer is not None:
        add_config_flags(parser, ConsensusConfig(), "agent (kept in agent.json)")
        add_config_flags(parser, config.explorer, EXPLORER, prefix=f"{EXPLORER}_")
        for name, part in nested_configs(config.explorer).items():
            add_config_flags(parser, part, f"{EXPLORER}'s {name}", prefix=f"{EXPLORER}_")
    return parser
