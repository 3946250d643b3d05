"""Flags of verbs that play episodes: the agent, episodes, devices, and the settings of its ensemble."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from expgen.agents.consensus import ConsensusConfig
from expgen.cli.flags import Parser, add_config_flags, agent_location
from expgen.training.average import Weights

Request = TypeVar("Request")
TEMPERATURE_HELP = "divide all policies' logits by this to sample actions; 1: as trained, 0: the most likely action"
EXPLORER_TEMPERATURE_HELP = "--temperature of explorers that play beside members"
PLAYING = {
    "episodes": "number of episodes",
    "seed": "random seed for choosing levels and sampling actions",
    "envs": "number of environments played at the same time",
    "device": "device of the policies: auto, cpu, cuda or cuda:N",
}


def add_agent_argument(parser: Parser) -> None:
    """Add RUN_OR_AGENT, an argument of `find_agent`."""
    text = "a run folder or its URL, an agent.json, a bundled agent (see expgen agents), or hf://USER/NAME"
    parser.add("run", text, type=agent_location, metavar="RUN_OR_AGENT")


def add_playing_flags(parser: Parser, **defaults: int | str) -> None:
    """Add the flags of PLAYING that `defaults` names."""
    for name, default in defaults.items():
        parser.add(f"--{name}", PLAYING[name], default)


def add_weights_flag(parser: Parser) -> None:
    """Add --weights: live or averaged weights."""
    text = "use live weights or, for policies trained with --average, averaged ones (default: as in agent.json)"
    parser.add("--weights", text, choices=get_args(Weights))


def add_ensemble_flags(parser: Parser) -> None:
    """Add --weights, the temperatures and the settings of an ensemble; `request_of` reads them."""
    add_weights_flag(parser)
    parser.add("--temperature", f"{TEMPERATURE_HELP} (default: as in agent.json)", type=float, metavar="X")
    text = f"{EXPLORER_TEMPERATURE_HELP} (default: as in agent.json, else --temperature)"
    parser.add("--explorer-temperature", text, type=float, metavar="X")
    add_config_flags(parser, ConsensusConfig(), "ensemble (default: the agent's own settings)")


def request_of(kind: Callable[..., Request], arguments: Mapping[str, Any]) -> Request:
    """Return a request of type `kind`; arguments that are not its fields become `consensus` settings."""
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    consensus = {name: value for name, value in arguments.items() if name not in names}
    return kind(**{name: value for name, value in arguments.items() if name in names}, consensus=consensus)
