"""expgen status RUNS…: show the state, progress and remaining time of runs."""

from collections import Counter
from collections.abc import Iterator, Sequence

from expgen.cli.flags import Parser, location
from expgen.errors import InputError
from expgen.reproduce.job import read_job_list
from expgen.runs.status import find_runs, run_status
from expgen.storage.location import Location
from expgen.storage.view import local_copy
from expgen.text import duration, text_line

COLUMNS = ("run", "state", "steps", "left", "")
WIDTHS = (32, 8, 25, 8, 0)  # of the columns
BROKEN = ("dead", "failed", "diverged", "silent", "damaged")


def main(argv: Sequence[str]) -> int:
    parser = Parser(
        "status",
        epilog="dead: the process is gone; silent: on another machine, nothing written for ten minutes; damaged: files "
        "cannot be read. To resume a run, repeat its command (expgen train: with --resume).",
    )
    parser.add("runs", "run folders or URLs, or --out of expgen reproduce", nargs="+", type=location, metavar="RUNS")
    paths = parser.parse_args(argv).runs
    states: Counter[str] = Counter()
    for path in paths:
        for row in _rows(path):
            if not states:
                print(text_line(COLUMNS, WIDTHS))
            states[row[1]] += 1
            print(text_line(row, WIDTHS))
    if not states:
        raise InputError(f"RUNS is {paths[0]}, which has no run; accepted: run folders, or the --out of reproduce")
    print(", ".join(f"{count} {state}" for state, count in states.most_common()))
    return 1 if any(states[state] for state in BROKEN) else 0


def _rows(where: Location) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield name, state, steps, time left and message of the runs in `where`, and of jobs that have not started."""
    found = {status.path.name: status for status in map(run_status, find_runs(where))}
    for name in dict.fromkeys((*read_job_list(local_copy(where, without_weights=True)), *found)):
        if name not in found:
            yield name, "waiting", "-", "-", ""
            continue
        status = found[name]
        steps = f"{status.steps:,}/{status.total_steps:,}" if status.total_steps else "-"
        left = "-" if status.seconds_left is None else duration(status.seconds_left)
        yield name, status.state, steps, left, status.message
