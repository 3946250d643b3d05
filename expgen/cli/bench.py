"""expgen bench [GAME]: how fast this machine steps, acts, updates and trains."""

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from expgen.bench.bench import bench
from expgen.bench.speed import COLUMNS, shares
from expgen.bench.trace import trace
from expgen.cli.flags import Parser, env_name, list_of, parse_options, whole_number
from expgen.errors import InputError, check_range, check_writable
from expgen.runs.make_config import make_config
from expgen.runs.presets import PRESETS
from expgen.training.resources import plan_resources


def main(argv: Sequence[str]) -> int:
    """Parse, measure, print each figure as it comes."""
    parser = Parser("bench", description="Measure throughput on this machine.")
    parser.add_argument("game", nargs="?", metavar="GAME", help="a ProcGen game; else minimaze or what --env says")
    parser.add_argument("--env", default=None, help="minimaze, procgen, gymnasium:ID or envpool:ID")
    parser.add_argument("--option", action="append", default=[], metavar="K=V", help="an option of the environment")
    parser.add_argument("--algo", default="ppo", help="algorithm (default ppo)")
    parser.add_argument("--preset", choices=tuple(PRESETS), help="scale (default paper on ProcGen, laptop elsewhere)")
    parser.add_argument(
        "--learners",
        type=list_of(whole_number),
        default=(1, 4, 11),
        metavar="A,B",
        help="numbers of learners to train side by side (default 1,4,11)",
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds to measure each figure for (default 10)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default auto)")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="also write a Chrome trace of the largest number of learners"
    )
    parser.add_argument("--json", action="store_true", help="a list of objects instead of lines of CSV")
    arguments = parser.parse_args(argv)
    counts = arguments.learners
    check_range("--learners", min(counts), 1)
    if not arguments.seconds > 0:
        raise InputError(f"--seconds is {arguments.seconds}; accepted: more than 0")
    if arguments.trace is not None and not arguments.trace.parent.is_dir():
        raise InputError(f"--trace is {arguments.trace}; accepted: a file in a folder that exists")
    if arguments.trace is not None:
        check_writable(arguments.trace)
    env = env_name(arguments.game, arguments.env) or "minimaze"
    config = make_config(env, arguments.algo, arguments.preset, options=parse_options(arguments.option))
    torch.set_num_threads(plan_resources(arguments.device, max(counts)).torch_threads)
    rows = []
    if not arguments.json:
        print(",".join(COLUMNS))
    words: list[str] = []
    for speed in bench(config, counts, arguments.seconds, arguments.device, words.append):
        rows.append(speed)
        if not arguments.json:
            print(",".join(str(value) for value in dataclasses.astuple(speed)), flush=True)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
    print(*words, *shares(rows), sep="\n", file=sys.stderr)
    if arguments.trace is not None:
        trace(config, max(counts), arguments.device, arguments.trace)
    return 0
