"""expgen report SCORES…: write a page of tables, statistics and figures beside the paper's numbers."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from expgen.cli.flags import Parser, folder
from expgen.errors import InputError, check_range
from expgen.evaluation.normalize import ConstantSet
from expgen.report.curves import Curve, published_curves, read_curves
from expgen.report.entry import Entry, number_entries, read_entries
from expgen.report.score_table import ScoreTable
from expgen.report.write import PAGE, TABLES, write_report
from expgen.runs.folder import RunFolder
from expgen.runs.plan import plans_of
from expgen.runs.result import curve_rows

ACCEPTED = "a score file, a run folder (its curves are shown too), or a folder that contains some"


def main(argv: Sequence[str]) -> int:
    parser = Parser("report")
    parser.add("scores", ACCEPTED, nargs="+", type=folder, metavar="SCORES")
    parser.add("--out", "folder for report.html, tables/ and figures/", type=folder, required=True, metavar="DIR")
    parser.add("--title", "heading of the page", "Scores")
    constants = "normalisation constants: the paper's (easy, hard) or those of rliable's notebook"
    parser.add("--constants", constants, "easy", choices=get_args(ConstantSet))
    parser.add("--resamples", "bootstrap resamples; the paper uses 50000 for aggregate metrics", 2000)
    embedded = "videos, images or pages to embed: .mp4, .gif, .png, .html"
    parser.add("--episodes", embedded, [], nargs="+", type=Path, metavar="FILE")
    arguments = parser.parse_args(argv)
    check_range("--resamples", arguments.resamples, 1)
    rows = [row for path in arguments.scores for row in _rows(path)]
    table = ScoreTable(number_entries(rows, arguments.scores), arguments.constants, arguments.resamples)
    curves = [curve for path in arguments.scores for curve in _curves(path)]
    page = write_report(table, arguments.out, arguments.title, episodes=arguments.episodes, curves=curves)
    print(f"done: {page}  (tables/, figures/ beside it)")
    return 0


def _curves(path: Path) -> Iterator[Curve]:
    """Yield training curves: of every run in a folder, or published beside a score file."""
    if not path.is_dir():
        yield from published_curves(path)
    for file in sorted(path.rglob("config.json")):
        run = RunFolder(file.parent)
        config, _ = run.read_config()
        algo_of = {plan.name: plan.policy.algo for plan in plans_of(config)}
        if run.metrics_file.exists():
            yield from read_curves(run.metrics_file, config.game, algo_of, config.algo, f"{file.parent}/")


def _rows(path: Path) -> list[Entry]:
    """Return the rows of a score file, or of all runs' curves and score files in a folder."""
    if not path.exists():
        raise InputError(f"SCORES is {path}, which does not exist; accepted: {ACCEPTED}")
    if not path.is_dir():
        return read_entries(path)
    runs = [RunFolder(file.parent) for file in sorted(path.rglob("config.json"))]
    curves = [Entry(row, str(run.metrics_file), line) for run in runs for line, row in curve_rows(run)]
    files = [file for file in sorted(path.rglob("scores.csv")) if not _is_table(file)]
    return curves + [row for file in files for row in read_entries(file)]


def _is_table(file: Path) -> bool:
    """Whether `file` is a table of an earlier report, whose folder may be among the runs."""
    return file.parent.name == TABLES and (file.parents[1] / PAGE).exists()
