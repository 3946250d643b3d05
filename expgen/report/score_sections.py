"""Scores by game compared with the paper's: Tables 1, 2, 8 and 9, Figures 2 and 12."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from expgen.evaluation.scores import Split
from expgen.paper import numbers
from expgen.report.bars import grouped_bars
from expgen.report.lines import short_steps
from expgen.report.methods import Method
from expgen.report.score_table import NORMALIZED_AS, Cell, ScoreTable
from expgen.report.section import NOTES, Section, join_words
from expgen.report.statistics import Estimate
from expgen.report.tables import Table, TableCell, interval_cell, number_cell

FIVE_GAMES = ("bigfish", "plunder", "jumper", "maze", "heist")
COMPARISON_COLUMNS = ("mean", "95 % interval", "runs", "steps", "paper", "difference", "overlap")


def score_section(table: ScoreTable, name: str, split: Split, budget: str = "25m") -> Section:
    """Return the scores on `split` of methods in default settings; a longer budget is the setting `budget=50M`."""
    settings = () if budget == "25m" else (("budget", budget.upper()),)
    methods = [m for m in table.methods() if m.settings == settings]
    cells = {(m, g): c for m in methods for g in table.games([m]) if (c := table.cell(m, g, split)) is not None}
    games = [game for game in table.games(methods) if any(game == played for _, played in cells)]
    methods = list(dict.fromkeys(method for method, _ in cells))
    paper = numbers.scores(split, budget)
    caption = "Each score with its interval, and the paper's mean ± standard deviation."
    each = comparison_table(name, caption, ("game", "method"), (
        ((game, Method(m.algorithm).label), cells.get((m, game)), paper.get((m.algorithm, game)))
        for game in games for m in methods
    ))  # fmt: skip
    return Section(name, NOTES["scores"], [_by_game(name, games, methods, cells, paper), each])


Cells = dict[tuple[Method, str], Cell]
PaperCells = dict[tuple[str, str], numbers.Cell]
Compared = tuple[tuple[TableCell | str, ...], Cell | None, numbers.Cell | None]  # first columns, our score, the paper's


def comparison_table(name: str, caption: str, columns: tuple[str, ...], rows: Iterable[Compared]) -> Table:
    """Return a table with one row per score of ours: first the given columns, then COMPARISON_COLUMNS."""
    table = Table(name, caption, (*columns, *COMPARISON_COLUMNS))
    for first_cells, cell, paper in rows:
        if cell is not None:
            table.add(*first_cells, *comparison_cells(cell, paper))
    return table


def _by_game(name: str, games: Sequence[str], methods: Sequence[Method], cells: Cells, paper: PaperCells) -> Table:
    """Return one row per game and one column per method: our mean and the paper's in brackets."""
    table = Table(f"{name}-by-game", "Mean return, ours (paper's); best of ours in bold.",
                  ("game", *(Method(method.algorithm).label for method in methods)))  # fmt: skip
    for game in games:
        best = max(cells[method, game].estimate.value for method in methods if (method, game) in cells)
        row = []
        for method in methods:
            cell, quoted = cells.get((method, game)), paper.get((method.algorithm, game))
            mean = mean_cell(cell, 1)
            text = f"{mean.text} ({quoted.mean:.1f})" if quoted else mean.text
            row.append(replace(mean, text=text, bold=mean.sort == best))
        table.add(game, *row)
    return table


def mean_cell(cell: Cell | None, digits: int = 2) -> TableCell:
    """Return the mean, linked to its score rows, or a dash if there is none."""
    return number_cell(cell.estimate.value, digits, cell.entries) if cell else TableCell("–")


def comparison_cells(cell: Cell, paper: numbers.Cell | None) -> list[TableCell]:
    """Return the cells of COMPARISON_COLUMNS; the last three are dashes if the paper has no such score."""
    value, low, high = cell.estimate
    count = len(cell.entries)
    runs = TableCell(f"{count} leaders" if cell.over == "leaders" else str(count), count)
    ours = [mean_cell(cell), interval_cell(low, high), runs, TableCell(short_steps(cell.steps), cell.steps)]
    if paper is None:
        return [*ours, *[TableCell("–")] * 3]
    overlap = "–" if math.isnan(low) else "yes" if cell.estimate.overlaps(*paper.interval) else "no"
    difference = number_cell(value - paper.mean, 2, sign=True)
    return [*ours, TableCell(str(paper), paper.mean), difference, TableCell(overlap)]


def leaders_note(table: ScoreTable, methods: Iterable[Method], games: Iterable[str]) -> str:
    """Return a sentence that names the test scores with an interval over leaders; empty if there are none."""
    names = []
    for method in methods:
        cells = {game: table.cell(method, game, "test") for game in games}
        if found := [game for game, cell in cells.items() if cell and cell.over == "leaders"]:
            names.append(f"{method.label} on {join_words(found)}")
    return f" Intervals of {join_words(names)} are over leaders, which share members and explorer." if names else ""


def _normalized(table: ScoreTable, method: Method, game: str) -> Estimate | None:
    """Return the normalised mean test score; None if there is none or the game has no constants."""
    cell = table.cell(method, game, "test") if table.is_normalizable(game) else None
    return Estimate(*(table.normalized(value, game) for value in cell.estimate)) if cell else None


def bar_section(table: ScoreTable, name: str, algorithms: Sequence[str], games: Sequence[str]) -> Section:
    """Return bars of normalised test scores on `games`, or on the built-in maze if none of them was played."""
    methods = [Method(algorithm) for algorithm in algorithms]
    played = table.games(methods)
    shown = [game for game in games if game in played] or [game for game in NORMALIZED_AS if game in played]
    bars = {game: group for game in shown if (group := {m: e for m in methods if (e := _normalized(table, m, game))})}
    quoted = {(game, Method(algorithm)): cell.mean for (algorithm, game), cell in numbers.scores("test").items()}
    paper = {(g, m): table.normalized(mean, g) for (g, m), mean in quoted.items() if g in bars and m in methods}
    figures = grouped_bars(bars, paper, "normalised test score")
    note = f"(R − R_min) / (R_max − R_min) on unseen levels, constants `{table.constants}`; 95 % intervals."
    note += leaders_note(table, methods, bars)
    alt_text = f"Bars of normalised test scores for {', '.join(bars)}"
    return Section(name, note, figures=[(alt_text, figure) for figure in figures])
