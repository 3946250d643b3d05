"""expgen status RUNS…: what runs, what is done, what has failed and how long is left, from run folders alone."""

from collections import Counter
from collections.abc import Sequence

from expgen.cli.flags import Parser, place
from expgen.errors import InputError
from expgen.reproduce.ledger import JobLedger
from expgen.runs.status import RunStatus, run_status, runs_below
from expgen.storage.location import Location
from expgen.storage.view import View
from expgen.text import text_line

BROKEN = ("dead", "failed", "diverged", "silent")


def main(argv: Sequence[str]) -> int:
    """Parse, look, print; 1 where something needs a hand."""
    parser = Parser(
        "status",
        description="What runs, is done or has failed, and how long is left. Nothing but the folders is asked.",
        epilog="dead: its process is gone; silent: no news from another machine for ten minutes. The same command that"
        " began a run goes on with it.",
    )
    parser.add_argument(
        "runs", metavar="RUNS", nargs="+", type=place, help="run folders or URLs, or the --out of reproduce"
    )
    paths = parser.parse_args(argv).runs
    states: Counter[str] = Counter()
    print(_line("run", "state", "steps", "left", ""))
    for path in paths:
        for name, state, steps, left, message in _rows(path):
            states[state] += 1
            print(_line(name, state, steps, left, message))
    if not states:
        raise InputError(f"RUNS is {paths[0]}, which holds no run; accepted: run folders, or the --out of reproduce")
    print(", ".join(f"{count} {state}" for state, count in states.most_common()))
    return 1 if any(states[state] for state in BROKEN) else 0


def _rows(where: Location) -> list[tuple[str, str, str, str, str]]:
    """Runs below `where`, and jobs of a reproduction that have no run yet."""
    found = {status.path.name: status for status in map(run_status, runs_below(where))}
    jobs = JobLedger(View(where).refresh()).read()
    rows = []
    for name in {**jobs, **found}:
        job, status = jobs.get(name), found.get(name)
        state, message = (status.state, status.message) if status else ("waiting", "")
        if job is not None:
            if job.status in ("refused", "failed"):
                state, message = "failed", job.message
            elif state == "done" and job.status == "waiting":
                state = "scoring"  # trained, its rows not yet all there
        rows.append((name, state, _steps(status), _left(status), message))
    return rows


def _steps(status: RunStatus | None) -> str:
    if status is None or not status.total_steps:
        return "-"
    return f"{status.steps:,}/{status.total_steps:,}"


def _left(status: RunStatus | None) -> str:
    if status is None or status.seconds_left is None:
        return "-"
    minutes = status.seconds_left / 60
    return f"{minutes / 60:.1f} h" if minutes >= 90 else f"{minutes:.1f} min"


def _line(*cells: str) -> str:
    return text_line(cells, (32, 8, 25, 8, 0))
