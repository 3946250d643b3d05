"""What several verbs have: the environment, the agent that plays and how, and where work is done."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from expgen.agents.consensus import ConsensusConfig
from expgen.cli.flags import Parser, add_config_flags, agent_place, whole_number
from expgen.cluster.engine import ENGINES, Engine, make_engine
from expgen.cluster.task import Share
from expgen.errors import InputError
from expgen.training.average import Weights

Request = TypeVar("Request")
PLAYING = {
    "episodes": "number of episodes",
    "seed": "random seed for choosing levels and sampling actions",
    "envs": "environments side by side",
    "device": "auto, cpu, cuda or cuda:N",
}


def add_engine_flags(parser: Parser) -> None:
    """--engine and what a cluster wants to know."""
    group = parser.add_argument_group("where it runs")
    group.add_argument("--engine", choices=ENGINES, default="local", help="this machine or a Ray cluster")
    group.add_argument(
        "--address", metavar="HOST:PORT", help="the cluster's head, or auto (default RAY_ADDRESS, else this machine)"
    )
    group.add_argument(
        "--cpus-per-job",
        type=float,
        metavar="N",
        help="CPUs that each job reserves (default one GPU's share of a node)",
    )
    group.add_argument(
        "--gpus-per-job", type=float, metavar="N", help="GPUs that each job reserves; 0.5 puts two jobs on one GPU"
    )


def pop_engine(arguments: dict[str, Any]) -> Engine:
    """The engine that those flags describe, which are taken out of `arguments`."""
    share = Share(arguments.pop("cpus_per_job"), arguments.pop("gpus_per_job"))
    return make_engine(arguments.pop("engine"), arguments.pop("address"), share)


def add_agent_argument(parser: Parser) -> None:
    """RUN_OR_AGENT, which `find_agent` understands."""
    text = "a run folder, its URL, an agent.json, an agent of expgen agents, or hf://USER/NAME"
    parser.add_argument("run", type=agent_place, metavar="RUN_OR_AGENT", help=text)


def add_playing_flags(parser: Parser, **defaults: int | str) -> None:
    """Those of PLAYING that `defaults` names."""
    for name, default in defaults.items():
        kind = whole_number if isinstance(default, int) else str
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"{PLAYING[name]} (default {default})")


def add_weights_flag(parser: Parser) -> None:
    """Which weights of each policy play."""
    text = "live weights, or the average that expgen train --average keeps, for policies that have one"
    text += " (default: as agent.json says)"
    parser.add_argument("--weights", choices=get_args(Weights), help=text)


def add_ensemble_flags(parser: Parser) -> None:
    """Which weights play and how an ensemble votes; `request_of` takes them in."""
    add_weights_flag(parser)
    add_config_flags(parser, ConsensusConfig(), "ensemble (default: the agent's own settings)")


def request_of(kind: Callable[..., Request], arguments: Mapping[str, Any]) -> Request:
    """The request that flags describe: those that are no fields of `kind` change how the ensemble votes."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    consensus = {name: value for name, value in arguments.items() if name not in names}
    return kind(**{name: value for name, value in arguments.items() if name in names}, consensus=consensus)


def env_name(game: str | None, env: str | None) -> str | None:
    """`maze` → `procgen:maze`; with a family in --env GAME is a game of it; neither → None, which means the default."""
    from expgen.envs.names import full_name
    from expgen.envs.procgen import GAMES

    family, _, inside = (env or "").partition(":")
    if game and env and (inside or family not in ("procgen", "gymnasium", "envpool")):
        raise InputError(f"GAME is {game!r} but --env names one too: {env!r}; accepted: one of them")
    if game and env:
        return full_name(f"{env.rstrip(':')}:{game}", "GAME")
    if env == "procgen":
        raise InputError(f"--env is 'procgen'; accepted with a GAME: {', '.join(GAMES)}")
    if game or env:
        return full_name(game or env or "", "GAME" if game else "--env")
    return None
