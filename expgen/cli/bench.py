"""expgen bench [GAME]: measure how fast this machine steps, acts, updates and trains."""

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

MAX_SECONDS = 86400  # per measurement


def main(argv: Sequence[str]) -> int:
    parser = Parser("bench")
    parser.add("game", "a ProcGen game (default: --env, else minimaze)", nargs="?", metavar="GAME")
    parser.add("--env", "environment: minimaze, procgen, gymnasium:ID or envpool:ID")
    parser.add("--option", "option of the environment; may be repeated", [], metavar="K=V")
    parser.add("--algo", "algorithm to train", "ppo")
    parser.add("--preset", "scale of the run (default paper on ProcGen, else laptop)", choices=tuple(PRESETS))
    learners = "numbers of learners to train at the same time"
    parser.add("--learners", learners, (1, 4, 11), type=list_of(whole_number), metavar="A,B")
    parser.add("--seconds", "seconds per measurement", 10.0)
    parser.add("--device", "device to train on: auto, cpu, cuda or cuda:N", "auto")
    parser.add("--trace", "also write a Chrome trace with the largest number of learners", type=folder, metavar="FILE")
    parser.add("--json", "print JSON instead of CSV", False)
    arguments = parser.parse_args(argv)
    counts = arguments.learners
    check_range("--learners", min(counts), 1)
    if not 0 < arguments.seconds <= MAX_SECONDS:
        raise InputError(f"--seconds is {arguments.seconds}; accepted: more than 0, at most {MAX_SECONDS}")
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
    notes: list[str] = []
    for speed in bench(config, counts, arguments.seconds, arguments.device, notes.append):
        rows.append(speed)
        if not arguments.json:
            print(",".join(str(value) for value in dataclasses.astuple(speed)), flush=True)
    if arguments.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
    print(*notes, *shares(rows), sep="\n", file=sys.stderr)
    if arguments.trace is not None:
        trace(config, max(counts), arguments.device, arguments.trace)
    return 0
