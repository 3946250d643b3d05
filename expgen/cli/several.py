"""Several runs by one command: GAME and --seed may be lists with commas, and every game with every seed is a run."""

from collections.abc import Iterator, Sequence
from typing import Any

from expgen.cli.flags import Parser
from expgen.errors import InputError
from expgen.storage.location import join


def arguments_of_each(parser: Parser, argv: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What the words `argv` ask of each run; below `--run`, which then is a folder of several, each has its own."""
    first = Parser("train", add_help=False)
    first.add_argument("--seed")
    known, words = first.parse_known_args(argv)
    seeds = _each_once("--seed", known.seed)
    for seed in seeds:
        parsed = parser.parse_args([*words, *(() if seed is None else ("--seed", seed))])
        games = _each_once("GAME", parsed.game)
        for game in games:
            arguments = {**vars(parsed), "game": game}
            parts = [*([game] if len(games) > 1 else []), *([f"seed{seed}"] if len(seeds) > 1 else [])]
            if arguments["run"] and parts:
                arguments["run"] = join(arguments["run"], "-".join(map(str, parts)))
            yield arguments


def _each_once(what: str, text: str | None) -> Sequence[str | None]:
    """`maze,heist` as maze and heist; where nothing is said, that."""
    names = [None] if text is None else text.split(",")
    if len(set(names)) < len(names):
        raise InputError(f"{what} is {text!r}; accepted: each of them once")
    return names
