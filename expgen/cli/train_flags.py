"""Arguments of `expgen train`: flags of the algorithm, a config file, several runs in one command."""

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from expgen.agents.consensus import CONSENSUS_SETTINGS, ConsensusConfig
from expgen.agents.temperature import AS_TRAINED, temperature_text
from expgen.algorithms.recipes import RECIPES, recipe_of
from expgen.cli.config_file import as_text, pop_runs, read_config_file, set_file_defaults
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
from expgen.cli.playing_flags import EXPLORER_TEMPERATURE_HELP, TEMPERATURE_HELP
from expgen.envs.procgen import GAMES
from expgen.errors import InputError
from expgen.runs.config import EXPLORER, default_config
from expgen.runs.folder import RunFolder
from expgen.runs.make_config import RUNS_FOLDER, make_config, make_consensus, plays_together
from expgen.runs.presets import PRESETS, default_algo, playing_values
from expgen.settings import nested_configs
from expgen.storage.location import join
from expgen.storage.view import local_copy

COMMON = "algo env config preset run resume take-over device levels seed members steps envs"  # flags that --help shows


def parse_runs(argv: Sequence[str]) -> list[dict[str, Any]]:
    """Return the arguments of each run in the config file, or of one run without `runs` in a file."""
    path = _parse_first_flags(argv, {}).config
    if path is None:
        return [_parse_run(argv, path, {})]
    values = read_config_file(path)
    return [_parse_run(argv, path, {**values, **own}, name) for name, own in pop_runs(path, values)]


def _parse_run(argv: Sequence[str], path: Path | None, values: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Return the arguments of one run; `values` are those of the file `path` for the run `name` (may be empty)."""
    known = _parse_first_flags(argv, values)
    algo = _default_algo(argv, values, known.preset) if known.algo is None else known.algo
    may_resume = known.resume or values.get("resume") is True
    if known.algo is None and may_resume and known.run and not name:
        folder_there = RunFolder(local_copy(known.run, without_weights=True))
        algo = folder_there.read_config()[0].algo if folder_there.exists() else algo
    recipe_of(algo)  # raises InputError for an unknown name
    parser = _parser(algo, _game_for_help(argv), known.preset)
    if path:
        set_file_defaults(path, values, parser, argv)
    arguments = vars(parser.parse_args(argv))
    arguments.pop("config")
    return {**arguments, "name": name}


def _parse_first_flags(argv: Sequence[str], values: Mapping[str, Any]) -> argparse.Namespace:
    """Parse the flags that decide which other flags exist; `values` are those of a config file."""
    first = Parser("train", add_help=False)
    kinds: dict[str, Callable[[str], Any]] = {"config": folder, "algo": str, "preset": str, "run": location}
    for name, kind in kinds.items():
        first.add_argument(f"--{name}", type=kind)
    first.add_argument("--resume", action="store_true")
    first.set_defaults(**{flag: as_text(flag, values[flag]) for flag in ("algo", "preset", "run") if flag in values})
    return first.parse_known_args(argv)[0]


def _default_algo(argv: Sequence[str], values: Mapping[str, Any], preset: str | None) -> str:
    """Return the algorithm of `preset` for the games of the flags or of a file's `values`; ignores bad names."""
    if preset != "best":
        return default_algo(preset)
    without_help = [word for word in argv if word not in ("-h", "--help")]
    given, _ = _parser(default_algo(preset)).parse_known_args(without_help)
    source = vars(given) if given.game or given.env else values
    games, env = (as_text(name, source.get(name) or "") for name in ("game", "env"))
    known: list[str | None] = [game for game in games.split(",") if game in GAMES]
    algos = {default_algo(preset, env_name(game, env or None)): game for game in known or [None]}
    if len(algos) > 1:
        kinds = " and ".join(f"{game} ({algo})" for algo, game in algos.items())
        raise InputError(f"--preset {preset} has different algorithms for {kinds}; accepted: one command for each")
    return next(iter(algos))


def expand_runs(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of each run: every game of GAME with every seed of --seed.

    With several runs, or a name from a config file, each run has a folder of its own inside `--run`.
    """
    games, seeds = _check_distinct("GAME", arguments["game"]), _check_distinct("--seed", arguments.get("seed"))
    for seed, game in itertools.product(seeds, games):
        run = {**arguments, "game": game} | ({} if seed is None else {"seed": seed})
        name = run.pop("name")
        parts = [name, game if len(games) > 1 else "", f"seed{seed}" if len(seeds) > 1 else ""]
        folder_name = "-".join(filter(None, parts))
        if folder_name and (run["run"] or name):
            run["run"] = join(run["run"] or RUNS_FOLDER, folder_name)
        yield run


def _check_distinct(what: str, given: Sequence[Any] | None) -> Sequence[Any]:
    """Return `given`, or [None] without it; raise InputError if a value is repeated."""
    if given is not None and len(set(given)) < len(given):
        raise InputError(f"{what} is {','.join(map(str, given))!r}; accepted: each of them once")
    return [None] if given is None else given


def _game_for_help(argv: Sequence[str]) -> str | None:
    """Return the first ProcGen game in `argv` if it asks for help, else None."""
    if "-h" not in argv and "--help" not in argv:
        return None
    return next((game for word in argv for game in word.split(",") if game in GAMES), None)


def _parser(algo: str, game: str | None = None, preset: str | None = None) -> Parser:
    """Return the parser of `algo`; its help shows the paper's defaults or, with `game`, those of game and preset."""
    if game and preset in (None, *PRESETS):
        config = make_config(f"procgen:{game}", algo, preset)
        consensus = make_consensus(config, preset)
        playing = playing_values(f"procgen:{game}", algo, preset)
        shown = f"on {game}" + (f" with --preset {preset}" if preset else "")
    else:
        config, consensus, playing = default_config(algo), None, {}
        shown = "in the paper; with a GAME, this help shows the defaults for that game and --preset"
    parser = Parser(
        "train",
        epilog=f"Settings and defaults are those of --algo {algo} {shown}. "
        "All settings of an algorithm: expgen train --algo A --help all.",
    )
    parser.all_help = f"expgen train --algo {algo} --help all"
    parser.common = frozenset(f"--{name}" for name in COMMON.split())
    parser.more = "Algorithms: " + "; ".join(f"{name} ({recipe.summary})" for name, recipe in RECIPES.items())
    games = "a ProcGen game or another environment; A,B trains one run of each (and so does --seed 0,1)"
    parser.add("game", games, nargs="?", type=list_of(str), metavar="GAME")
    default = "default ppo; with --preset best, our strongest on GAME"
    parser.add("--algo", f"algorithm: {', '.join(RECIPES)} ({default})")
    parser.add("--env", "environment: minimaze, procgen, gymnasium:ID, envpool:ID or a registered name")
    parser.add("--option", "option of the environment; may be repeated", [], metavar="K=V")
    wrapper = "Gymnasium wrapper, with arguments as in MODULE:CLASS(size=64); may be repeated, applied in order"
    parser.add("--wrapper", wrapper, [], metavar="MODULE:CLASS")
    file = "YAML or JSON file of flags, of one run (such as config.json) or several; command-line flags override it"
    parser.add("--config", file, metavar="FILE")
    parser.add("--preset", "scale of the run (default paper on ProcGen, else laptop)", choices=tuple(PRESETS))
    parser.add("--run", "folder or URL of the run (default runs/GAME-ALGO-seedN)", type=location, metavar="DIR")
    parser.add("--resume", "resume the run in DIR if it exists", False)
    take_over = "resume even if another process on this machine trains the run; that process stops"
    parser.add("--take-over", take_over, False)
    parser.add("--device", "device to train on: auto, cpu, cuda or cuda:N", "auto")
    parser.add("--processes", "number of worker processes that share the learners, or auto", "auto", metavar="N")
    hang = "in worker processes, fail a learner whose environment step or minibatch takes longer; 0: no limit"
    parser.add("--hang-seconds", hang, 0.0, metavar="S")
    parser.add("--log", "also log metrics to wandb or mlflow; may be repeated", [], metavar="TOOL")
    add_engine_flags(parser)
    add_config_flags(parser, config, "run", leave_out=("algo", "env", "options"))
    parser._option_string_actions["--seed"].type = list_of(whole_number)
    for name, part in nested_configs(config).items():
        if name != EXPLORER:
            add_config_flags(parser, part, name)
    temperature = temperature_text(playing.get("temperature", AS_TRAINED))
    text = f"{TEMPERATURE_HELP}; written to agent.json (default {temperature})"
    parser.add("--temperature", text, type=float, metavar="X")
    if plays_together(algo):
        no_vote = {*CONSENSUS_SETTINGS} - {"turn"} if recipe_of(algo).takes_turns else ()
        add_config_flags(parser, consensus or ConsensusConfig(), "agent (written to agent.json)", leave_out=no_vote)
    if config.explorer is not None:
        text = f"{EXPLORER_TEMPERATURE_HELP}; written to agent.json (default --temperature)"
        parser.add("--explorer-temperature", text, type=float, metavar="X")
        add_config_flags(parser, config.explorer, EXPLORER, prefix=f"{EXPLORER}_")
        for name, part in nested_configs(config.explorer).items():
            add_config_flags(parser, part, f"{EXPLORER}'s {name}", prefix=f"{EXPLORER}_")
    return parser
