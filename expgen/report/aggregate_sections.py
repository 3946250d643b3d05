"""All games together: Figures 6 and 7, by rliable."""

import numpy as np

from expgen.paper import numbers
from expgen.report.bars import aggregate_metrics, distributions, improvements
from expgen.report.methods import Method
from expgen.report.score_sections import leaders_note
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section, counted, sentence
from expgen.report.statistics import METRICS, Estimate, aggregates, probability_of_improvement, score_distribution
from expgen.report.tables import Table, TableCell, interval_cell, number_cell

REFERENCE = ("expgen-idaac", "expgen")  # whose improvement over the others is shown: the first that has scores
NOT_COMPARED = ("maxent", "random")  # they are not out for reward


def _compared(table: ScoreTable) -> tuple[list[Method], list[str]]:
    plain = [m for m in table.methods() if m.has_only() and m.algorithm not in NOT_COMPARED]
    return table.comparable(plain)


def distribution_section(table: ScoreTable) -> Section | None:
    """Figure 6."""
    methods, games = _compared(table)
    if len(methods) < 2:
        return None
    scores = table.matrix(methods, games)
    tau = np.linspace(0, 1, 101)
    by_label = {method.label: scores[method] for method in methods}
    found = score_distribution(by_label, tau, table.resamples)
    reference = next((m for name in REFERENCE for m in methods if m.algorithm == name), methods[-1])
    improvement = {
        other: probability_of_improvement(scores[reference], scores[other], table.resamples)
        for other in reversed(methods)
        if other != reference
    }
    result = Table("figure-6", "Probability that a run of X scores above a run of Y, averaged over games.",
                   ("X", "Y", "P(X > Y)", "95 % interval"))  # fmt: skip
    for other, estimate in improvement.items():
        runs = min(len(scores[reference]), len(scores[other]))
        result.add(reference.label, other.label, number_cell(estimate.value), _interval(estimate, runs))
    note = _note(table, methods, games) + " The paper has 0.6 for ExpGen-IDAAC over IDAAC."
    figures = (
        ("Score distributions by method", distributions({method: found[method.label] for method in methods}, tau)),
        (f"Probability that {reference.label} scores above another method", improvements(improvement, reference)),
    )
    return Section("figure-6", note, (result,), figures)


def aggregate_section(table: ScoreTable) -> Section | None:
    """Figure 7."""
    methods, games = _compared(table)
    if not methods:
        return None
    scores = table.matrix(methods, games)
    found = aggregates({method.label: scores[method] for method in methods}, table.resamples)
    paper = {method: point for method in methods if (point := _paper_point(table, method, games))}
    caption = "Aggregate metrics of normalised test scores, ours and those of the paper's table."
    result = Table("figure-7", caption, ("method", "metric", "value", "95 % interval", "runs", "paper"))
    for method in methods:
        runs = len(scores[method])
        for metric in METRICS:
            estimate = found[method.label][metric]
            quoted = number_cell(paper.get(method, {}).get(metric), 3)
            cells = (number_cell(estimate.value, 3), _interval(estimate, runs), number_cell(runs, 0), quoted)
            result.add(method.label, metric, *cells)
    drawn = aggregate_metrics({method: found[method.label] for method in methods}, paper)
    note = _note(table, methods, games) + (
        " The paper's are those of its printed means on the same games, each game counted as one run: mean, median and"
        " gap are exact, the IQM is that of game means." if paper else ""
    )  # fmt: skip
    figures = tuple((f"{metric} of normalised scores by method", figure) for metric, figure in drawn.items())
    return Section("figure-7", note, (result,), figures)


def _paper_point(table: ScoreTable, method: Method, games: list[str]) -> dict[str, float]:
    quoted = numbers.scores("test")
    if not all((method.algorithm, game) in quoted for game in games):
        return {}
    row = np.array([[table.normalized(quoted[method.algorithm, game].mean, game) for game in games]])
    return {metric: estimate.value for metric, estimate in aggregates({"": row}, 2)[""].items()}


def _interval(estimate: Estimate, runs: int) -> TableCell:
    """A bootstrap over one run would say that nothing is uncertain."""
    return TableCell("one run") if runs < 2 else interval_cell(estimate.low, estimate.high, 3)


def _note(table: ScoreTable, methods: list[Method], games: list[str]) -> str:
    runs = sorted({len(scores) for scores in table.matrix(methods, games).values()})
    how_many = f"{runs[0]} to {runs[-1]} runs" if len(runs) > 1 else counted(runs[0], "run")
    left_out = [
        m.label for m in table.methods() if m.has_only() and m not in methods and m.algorithm not in NOT_COMPARED
    ]
    return (
        f"rliable, {table.resamples:,} stratified bootstrap resamples over runs; {counted(len(games), 'game')} "
        f"({', '.join(games)}); {how_many} a method; constants `{table.constants}`."
        + leaders_note(table.over_leaders(methods, games))
        + (f" Not scored on these games and left out: {sentence(left_out)}." if left_out else "")
    )
