"""Aggregates over games by rliable: Figures 6 and 7, and our aggregates compared with published ones."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy import ndarray

from expgen.evaluation.normalize import ConstantSet, normalized
from expgen.paper import numbers
from expgen.report.bars import aggregate_metrics, distributions, improvements
from expgen.report.methods import LABELS, Method
from expgen.report.score_sections import leaders_note
from expgen.report.score_table import ScoreTable
from expgen.report.section import NOTES, Section, join_words, plural
from expgen.report.statistics import METRICS, Estimate, aggregates, probability_of_improvement, score_distribution
from expgen.report.tables import Table, TableCell, interval_cell, number_cell

REFERENCE = ("expgen-idaac", "expgen")  # Figure 6 shows the improvement of the first of these that has scores
NOT_COMPARED = ("maxent", "random")  # not trained for the reward of the game
CONSTANT_SETS: tuple[ConstantSet, ...] = ("easy", "rliable")


def _default_methods(table: ScoreTable) -> list[Method]:
    return [method for method in table.methods() if method.is_default and method.algorithm not in NOT_COMPARED]


def distribution_section(table: ScoreTable) -> Section | None:
    """Return Figure 6, or None with fewer than two methods."""
    methods, games = table.comparable(_default_methods(table))
    if len(methods) < 2:
        return None
    scores = table.matrix(methods, games)
    tau = np.linspace(0, 1, 101)
    found = score_distribution(scores, tau, table.resamples)
    reference = next((m for name in REFERENCE for m in methods if m.algorithm == name), methods[-1])
    improvement = {
        other: probability_of_improvement(scores[reference], scores[other], table.resamples)
        for other in reversed(methods)
        if other != reference
    }
    result = Table("figure-6", "Probability that a run of X scores above a run of Y, averaged over games.",
                   ("X", "Y", "P(X > Y)", "95 % interval"))  # fmt: skip
    for other, estimate in improvement.items():
        rows = min(len(scores[reference]), len(scores[other]))
        result.add(reference.label, other.label, number_cell(estimate.value), _interval(estimate, rows))
    note = _note(table, scores, games) + " The paper has 0.6 for ExpGen-IDAAC over IDAAC."
    figures = [
        ("Score distributions by method", distributions(found, tau)),
        (f"Probability that {reference.label} scores above another method", improvements(improvement, reference)),
    ]
    return Section("figure-6", note, [result], figures)


def aggregate_section(table: ScoreTable) -> Section | None:
    """Return Figure 7, or None without comparable methods."""
    methods, games = table.comparable(_default_methods(table))
    if not methods:
        return None
    scores = table.matrix(methods, games)
    found = aggregates(scores, table.resamples)
    paper = {m: point for m in methods if (point := paper_point(m.algorithm, games, table.constants))}
    caption = "Aggregate metrics of normalised test scores: ours, and those computed from the paper's Table 1."
    result = Table("figure-7", caption, ("method", "metric", "value", "95 % interval", "runs", "paper"))
    for method in methods:
        runs, rows = _runs_cell(table, method, games), len(scores[method])
        for metric, estimate in found[method].items():
            quoted = number_cell(paper.get(method, {}).get(metric), 3)
            result.add(method.label, metric, number_cell(estimate.value, 3), _interval(estimate, rows), runs, quoted)
    drawn = aggregate_metrics(found, paper)
    note = _note(table, scores, games) + (
        " The paper's metrics are computed from its printed means on the same games, as one run per game: mean, median"
        " and gap are exact, the IQM is that of the game means." if paper else ""
    )  # fmt: skip
    figures = [(f"{metric} of normalised scores by method", figure) for metric, figure in drawn.items()]
    return Section("figure-7", note, [result], figures)


def paper_point(algorithm: str, games: tuple[str, ...] | list[str], constants: ConstantSet) -> dict[str, float]:
    """Return the aggregates of the paper's mean test scores on `games`; empty unless it has all of them."""
    quoted = numbers.scores("test")
    if not all((algorithm, game) in quoted for game in games):
        return {}
    row = np.array([[normalized(quoted[algorithm, game].mean, game, constants) for game in games]])
    return {metric: estimate.value for metric, estimate in aggregates({"": row}, 2)[""].items()}


def _interval(estimate: Estimate, rows: int) -> TableCell:
    """Return the interval as a cell; one run, or one row of means over runs, has none: the bootstrap is over rows."""
    return TableCell("–") if rows < 2 else interval_cell(estimate.low, estimate.high, 3)


def runs_text(runs: tuple[int, int]) -> str:
    """Return `3 runs`, or `1 to 3 runs` if games differ in their number of runs."""
    return f"{runs[0]} to {plural(runs[1], 'run')}" if runs[0] < runs[1] else plural(runs[0], "run")


def _runs_cell(table: ScoreTable, method: Method, games: Sequence[str]) -> TableCell:
    runs = table.num_runs(method, games)
    return TableCell(runs_text(runs).rpartition(" ")[0], runs[0])


def _note(table: ScoreTable, scores: Mapping[Method, ndarray], games: list[str]) -> str:
    runs = {method: table.num_runs(method, games) for method in scores}
    fewest, most = min(low for low, _ in runs.values()), max(high for _, high in runs.values())
    uneven = [method.label for method, (low, high) in runs.items() if low < high]
    means = "not as many runs of every game, so the mean of each game counts as one run."
    left_out = [method.label for method in _default_methods(table) if method not in scores]
    return (
        f"rliable, {table.resamples:,} stratified bootstrap resamples over runs; {plural(len(games), 'game')} "
        f"({', '.join(games)}); {runs_text((fewest, most))} per method; constants `{table.constants}`."
        + (f" {join_words(uneven)}: {means}" if uneven else "")
        + leaders_note(table, scores, games)
        + (f" Omitted, because not scored on all of these games: {join_words(left_out)}." if left_out else "")
    )


def published_section(table: ScoreTable) -> Section | None:
    """Return our aggregates, the paper's on the same games and on all sixteen, and later published ones.

    A method needs scores on at least two games; a method with non-default settings needs all sixteen.
    """
    columns = ("method", "source", "games", "runs", "constants", *METRICS)
    result = Table("aggregates", "Median, IQM, mean and optimality gap of normalised scores.", columns)
    all_games, compared = numbers.games(), set()
    tables = {constants: ScoreTable(table.entries, constants, table.resamples) for constants in CONSTANT_SETS}
    for method in table.methods():
        games = tuple(game for game in all_games if table.final_entries(method, game, "test"))
        if len(games) < 2 or method.algorithm in NOT_COMPARED or not (method.is_default or games == all_games):
            continue
        compared.add((method.algorithm, games))
        for constants, normalized_table in tables.items():
            scores = normalized_table.matrix([method], games)
            counts = (number_cell(len(games), 0), _runs_cell(table, method, games))
            found = aggregates(scores, table.resamples)[method].values()
            cells = (_with_interval(estimate, len(scores[method])) for estimate in found)
            result.add(method.label, "ours", *counts, constants, *cells)
    if not compared:
        return None
    compared |= {(algorithm, all_games) for algorithm in numbers.METHODS}
    for algorithm, games in sorted(compared, key=lambda pair: (len(pair[1]), Method(pair[0]).rank)):
        for constants in CONSTANT_SETS if algorithm in numbers.METHODS else ():
            point = paper_point(algorithm, games, constants)
            counts = (number_cell(len(games), 0), number_cell(numbers.RUNS["25m"], 0))
            cells = (number_cell(value, 3) for value in point.values())
            result.add(LABELS[algorithm], "paper", *counts, constants, *cells)
    later = numbers.later_aggregates()
    for method_and_source in dict.fromkeys(name for name, _ in later):
        values = (_quoted_cell(later.get((method_and_source, metric))) for metric in METRICS)
        result.add(*method_and_source, number_cell(len(all_games), 0), "–", "not known", *values)
    return Section("aggregates", NOTES["aggregates"], [result], heading="Comparison with published aggregates")


def _quoted_cell(quoted: numbers.Quoted | None) -> TableCell:
    if quoted is None:
        return TableCell("–")
    return TableCell(f"{'≈ ' if quoted.is_approximate else ''}{quoted.value:.2f}", quoted.value)


def _with_interval(estimate: Estimate, runs: int) -> TableCell:
    text = number_cell(estimate.value, 3).text
    return TableCell(text if runs < 2 else f"{text} ({estimate.low:.3f} to {estimate.high:.3f})", estimate.value)
