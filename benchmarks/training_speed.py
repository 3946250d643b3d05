"""Steps per second of whole training runs, as `expgen train` makes them: environments, reward and updates included.

Each case is one `expgen train` command, started in a process of its own, measured for `--seconds` and then stopped. The
clock of a learner starts with its first row of metrics, so start-up and kernel compilation are not counted; the seconds
from the command to that row are reported beside it.

    python benchmarks/training_speed.py --seconds 300 --cases population-maze population-heist --out results/speed.csv
"""

import argparse
import csv
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from expgen.bench.speed import COLUMNS, Speed
from expgen.provenance import commit
from expgen.training.metrics import MetricsFile
from expgen.training.resources import hardware, resolve_device

ENDLESS = "1000000000"  # steps: more than any measurement takes


class Case(NamedTuple):
    """One training command to measure."""

    description: str
    game: str
    num_learners: int
    flags: str  # of expgen train


POPULATION = f"--algo expgen --members 10 --explorer-steps {ENDLESS}"
CASES = {
    "population-maze": Case("10 ppo and the explorer", "maze", 11, POPULATION),
    "population-heist": Case("10 ppo and the explorer", "heist", 11, POPULATION),
    "explorers": Case("4 explorers", "maze", 4, "--algo maxent --members 4"),
    "explorer": Case("1 explorer", "maze", 1, "--algo maxent"),
    "idaac": Case("4 idaac", "maze", 4, "--algo idaac --members 4"),
    "laptop": Case("2 ppo", "minimaze", 2, "--preset laptop --algo ppo --members 2"),
}


class Progress(NamedTuple):
    """A learner's environment steps when its newest row of metrics was seen."""

    steps: int
    seconds: float  # since the command was started


def train_command(case: Case, run: Path, device: str, processes: str) -> list[str]:
    """Return the command that trains `case` in the run folder `run` until it is stopped."""
    game = [] if case.game == "minimaze" else [case.game]
    shared = ["--steps", ENDLESS, "--eval-every", "0", "--device", device, "--processes", processes, "--run", str(run)]
    return [sys.executable, "-m", "expgen", "train", *game, *case.flags.split(), *shared]


def measure(command: Sequence[str], run: Path, case: Case, seconds: float) -> tuple[float, float]:
    """Return the steps per second of all learners together, and the seconds until the first row of metrics."""
    started = time.perf_counter()
    training = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    first: dict[str, Progress] = {}
    last: dict[str, Progress] = {}
    try:
        while not first or time.perf_counter() - started < min(one.seconds for one in first.values()) + seconds:
            time.sleep(0.2)
            if training.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with status {training.returncode}")
            now = time.perf_counter() - started
            for learner, row in MetricsFile(run / "metrics.csv").latest().items():
                steps = int(row["env_steps"])
                first.setdefault(learner, Progress(steps, now))
                if learner not in last or steps > last[learner].steps:
                    last[learner] = Progress(steps, now)
    finally:
        training.send_signal(signal.SIGTERM)
        training.wait()
    if len(first) < case.num_learners or any(last[name] == first[name] for name in first):
        raise SystemExit(f"{seconds:.0f} s are too few: a learner has fewer than two rows of metrics")
    rates = ((last[name].steps - one.steps) / (last[name].seconds - one.seconds) for name, one in first.items())
    return sum(rates), min(one.seconds for one in first.values())


def append(file: Path, row: Speed) -> None:
    """Add a row to a CSV file like results/speed.csv, which is created if it is missing."""
    is_new = not file.exists()
    with file.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(asdict(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["population-maze", "explorers", "idaac"])
    parser.add_argument("--seconds", type=float, default=60, help="seconds to measure each case (default 60)")
    parser.add_argument("--processes", default="auto", help="worker processes, as for expgen train (default auto)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default auto)")
    parser.add_argument("--out", type=Path, help="also append the rows to this CSV file")
    args = parser.parse_args()
    device = resolve_device(args.device)
    for name in args.cases:
        case = CASES[name]
        what = f"training, {case.description}, {args.processes} processes, {args.seconds:.0f} s"
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder, "run")
            rate, start = measure(train_command(case, run, str(device), args.processes), run, case, args.seconds)
        print(f"{what}, {case.game}: {rate:,.0f} steps/s; first row of metrics after {start:.1f} s", flush=True)
        date = datetime.now(UTC).date().isoformat()
        row = Speed(what, case.game, case.num_learners, round(rate), hardware(device), commit(), date)
        if args.out is not None:
            append(args.out, row)


if __name__ == "__main__":
    main()
