"""--weights, of every verb that plays what a run has learnt."""

from argparse import ArgumentParser
from typing import get_args

from expgen.training.average import Weights


def add_weights_flag(parser: ArgumentParser) -> None:
    """Which weights of each policy play."""
    text = "live, or average: their average, wherever a policy has one (expgen train --average)"
    text += "; default: what the agent plays with"
    parser.add_argument("--weights", choices=get_args(Weights), help=text)
