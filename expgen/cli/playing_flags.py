"""Flags of the verbs that play: which agent, how long, and how its ensemble votes."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from expgen.agents.consensus import ConsensusConfig
from expgen.cli.flags import Parser, add_config_flags, agent_location
from expgen.training.average import Weights

Request = TypeVar("Request")
PLAYING = {
    "episodes": "number of episodes",
    "seed": "random seed for choosing levels and sampling actions",
    "envs": "environments side by side",
    "device": "auto, cpu, cuda or cuda:N",
}


def add_agent_argument(parser: Parser) -> None:
    """RUN_OR_AGENT, which `find_agent` understands."""
    text = "a run folder, its URL, an agent.json, an agent of expgen agents, or hf://USER/NAME"
    parser.add("run", text, type=agent_location, metavar="RUN_OR_AGENT")


def add_playing_flags(parser: Parser, **defaults: int | str) -> None:
    """Those of PLAYING that `defaults` names."""
    for name, default in defaults.items():
        parser.add(f"--{name}", PLAYING[name], default)


def add_weights_flag(parser: Parser) -> None:
    """Which weights of each policy play."""
    text = "live weights, or the average that expgen train --average keeps, for policies that have one"
    parser.add("--weights", f"{text} (default: as agent.json says)", choices=get_args(Weights))


def add_ensemble_flags(parser: Parser) -> None:
    """Which weights play and how an ensemble votes; `request_of` takes them in."""
    add_weights_flag(parser)
    add_config_flags(parser, ConsensusConfig(), "ensemble (default: the agent's own settings)")


def request_of(kind: Callable[..., Request], arguments: Mapping[str, Any]) -> Request:
    """The request that flags describe: those that are no fields of `kind` change how the ensemble votes."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    consensus = {name: value for name, value in arguments.items() if name not in names}
    return kind(**{name: value for name, value in arguments.items() if name in names}, consensus=consensus)
