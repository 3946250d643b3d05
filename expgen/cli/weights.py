"""--weights, of every verb that plays what a run has learnt."""

from argparse import ArgumentParser
from typing import get_args

from expgen.training.average import Weights


def add_weights_flag(parser: ArgumentParser) -> None:
    """Which weights of each policy play."""
    text = "live, or average: their average, wherever a policy has one (expgen train --average; default live)"
    parser.add_argument("--weights", choices=get_args(Weights), default="live", help=text)
