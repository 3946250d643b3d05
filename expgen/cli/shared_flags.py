"""Flags that several verbs have: where work is done, here or on a Ray cluster, and which weights play."""

from argparse import ArgumentParser
from typing import Any, get_args

from expgen.cli.flags import Parser
from expgen.cluster.engine import ENGINES, Engine, make_engine
from expgen.cluster.task import Share
from expgen.training.average import Weights


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


def add_weights_flag(parser: ArgumentParser) -> None:
    """Which weights of each policy play."""
    text = "live weights, or the average that expgen train --average keeps, for policies that have one"
    text += " (default: as agent.json says)"
    parser.add_argument("--weights", choices=get_args(Weights), help=text)
