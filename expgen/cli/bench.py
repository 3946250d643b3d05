"""expgen bench [GAME]: how fast this machine steps, acts, updates and trains."""

import dataclasses
import json
import sys
from collections.abc import Sequence

import torch

from expgen.bench.bench import bench
from expgen.bench.speed import COLUMNS, shares
from expgen.bench.trace import trace
from expgen.cli.flags import Parser, env_name, folder, list_of, parse_options, whole_number
from expgen.errors import InputError, check_range, check_writable
from expgen.runs.make_config import make_config
from expgen.runs.presets import PRESETS
from expgen.training.resources import plan_resources

MOST_SECONDS = 86400  # a day for one figure


def main(argv: Sequence[str]) -> int:
    """Parse, measure, print each figure as it comes."""
    parser = Parser("bench", description="Measure throughput on this machine.")
    parser.add("game", "a ProcGen game; else minimaze or what --env says", nargs="?", metavar="GAME")
    parser.add("--env", "minimaze, procgen, gymnasium:ID or envpool:ID")
    parser.add("--option", "an option of the environment", [], metavar="K=V")
    parser.add("--algo", "algorithm", "ppo")
    parser.add("--preset", "scale (default paper on ProcGen, laptop elsewhere)", choices=tuple(PRESETS))
    learners = "numbers of learners to train side by side"
    parser.add("--learners", learners, (1, 4, 11), type=list_of(whole_number), metavar="A,B")
    parser.add("--seconds", "seconds to measure each figure for", 10.0)
    parser.add("--device", "auto, cpu, cuda or cuda:N", "auto")
    parser.add("--trace", "also write a Chrome trace of the largest number of learners", type=folder, metavar="FILE")
    parser.add("--json", "a list of objects instead of lines of CSV", False)
    arguments = parser.parse_args(argv)
    counts = arguments.learners
    check_range("--learners", min(counts), 1)
    if not 0 < arguments.seconds <= MOST_SECONDS:
        raise InputError(f"--seconds is {arguments.seconds}; accepted: more than 0, at most {MOST_SECONDS}")
    if arguments.trace is not None:
        if not arguments.trace.parent.is_dir():
            raise InputError(f"--trace is {arguments.trace}; accepted: a file in a folder that exists")
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
