"""Aggregates over games beside published ones: ours, the paper's table, later papers; with both sets of constants."""

import numpy as np

from expgen.evaluation.normalize import ConstantSet, normalized
from expgen.paper import numbers
from expgen.report.aggregate_sections import NOT_COMPARED
from expgen.report.methods import LABELS, Method
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section
from expgen.report.statistics import METRICS, Estimate, aggregates
from expgen.report.tables import Table, TableCell, number_cell

IN_USE: tuple[ConstantSet, ...] = ("easy", "rliable")
COLUMNS = ("method", "whose", "games", "runs", "constants", *METRICS)
NOTE = (
    "Unseen levels. `ours`: each method over all of its games; 95 % intervals by rliable's stratified bootstrap over "
    "runs, where there are two or more. `paper`: from the means of its Table 1, over our games and over all sixteen. "
    "Below them what others have published since, on all sixteen games (≈: read off a figure); which constants they "
    "take is not known to us. Rows compare where games and constants are the same. P(X > Y) of Figure 6 does not "
    "depend on the constants."
)


def published_section(table: ScoreTable) -> Section | None:
    """Ours from two games on; a variant with settings of its own where it has all sixteen."""
    result = Table("aggregates", "Median, IQM, mean and optimality gap of normalised scores.", COLUMNS)
    asked = set()
    for method in table.methods():
        games = [game for game in numbers.games() if table.final(method, game, "test")]
        is_whole = len(games) == len(numbers.games())
        if len(games) < 2 or method.algorithm in NOT_COMPARED or not (method.has_only() or is_whole):
            continue
        for constants in IN_USE:
            _add_ours(result, table, method, games, constants)
        asked.add((method.algorithm, tuple(games)))
    if not asked:
        return None
    whole = {(algorithm, numbers.games()) for algorithm in numbers.METHODS}
    for algorithm, of in sorted(asked | whole, key=lambda pair: (len(pair[1]), Method(pair[0]).rank)):
        for constants in IN_USE if algorithm in numbers.METHODS else ():
            _add_papers(result, algorithm, of, constants)
    later = numbers.later_aggregates()
    for method_and_source in dict.fromkeys(name for name, _ in later):
        cells = (_later_cell(later.get((method_and_source, metric))) for metric in METRICS)
        result.add(*method_and_source, number_cell(len(numbers.games()), 0), "–", "not known", *cells)
    return Section("aggregates", NOTE, (result,), heading="Aggregates beside published ones")


def _add_ours(result: Table, table: ScoreTable, method: Method, games: list[str], constants: ConstantSet) -> None:
    own = ScoreTable(table.entries, constants, table.resamples)
    matrix = own.matrix([method], games)[method]
    found = aggregates({"": matrix}, table.resamples)[""]
    cells = (_estimate_cell(found[metric], len(matrix)) for metric in METRICS)
    result.add(method.label, "ours", number_cell(len(games), 0), number_cell(len(matrix), 0), constants, *cells)


def _add_papers(result: Table, algorithm: str, games: tuple[str, ...], constants: ConstantSet) -> None:
    quoted = numbers.scores("test")
    row = np.array([[normalized(quoted[algorithm, game].mean, game, constants) for game in games]])
    found = aggregates({"": row}, 2)[""]
    runs = number_cell(numbers.RUNS["25m"], 0)
    cells = (number_cell(found[metric].value, 3) for metric in METRICS)
    result.add(LABELS[algorithm], "paper", number_cell(len(games), 0), runs, constants, *cells)


def _estimate_cell(estimate: Estimate, runs: int) -> TableCell:
    text = number_cell(estimate.value, 3).text
    return TableCell(text if runs < 2 else f"{text} ({estimate.low:.3f} to {estimate.high:.3f})", estimate.value)


def _later_cell(quoted: numbers.Quoted | None) -> TableCell:
    if quoted is None:
        return TableCell("–")
    return TableCell(f"{'≈ ' if quoted.is_about else ''}{quoted.value:.2f}", quoted.value)
