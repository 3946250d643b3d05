"""Scores by game beside the paper's: Tables 1, 2, 8 and 9, Figures 2 and 12."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from expgen.evaluation.scores import Split
from expgen.paper import numbers
from expgen.report.bars import grouped_bars
from expgen.report.lines import short_steps
from expgen.report.methods import Method
from expgen.report.score_table import STANDS_FOR, Cell, ScoreTable
from expgen.report.section import NOTES, Section, sentence
from expgen.report.statistics import Estimate
from expgen.report.tables import Table, TableCell, interval_cell, number_cell

FIVE_GAMES = ("bigfish", "plunder", "jumper", "maze", "heist")
BESIDE = ("mean", "95 % interval", "runs", "steps", "paper", "difference", "overlap")


def score_section(table: ScoreTable, name: str, split: Split, budget: str = "25m") -> Section | None:
    """Every plain method with scores of `split`; those trained for the longer budget say so in their settings."""
    settings = () if budget == "25m" else (("budget", budget.upper()),)
    methods = [m for m in table.methods() if m.settings == settings]
    cells = {(m, g): c for m in methods for g in table.games([m]) if (c := table.cell(m, g, split)) is not None}
    if not cells:
        return None
    games = [game for game in table.games(methods) if any(game == played for _, played in cells)]
    methods = list(dict.fromkeys(method for method, _ in cells))
    paper = numbers.scores(split, budget)
    caption = "Each score with its interval, beside the paper's mean ± standard deviation."
    each = comparison(name, caption, ("game", "method"), (
        ((game, Method(m.algorithm).label), cells.get((m, game)), paper.get((m.algorithm, game)))
        for game in games for m in methods
    ))  # fmt: skip
    return Section(name, NOTES["scores"], [_wide(name, games, methods, cells, paper), each])


Cells = dict[tuple[Method, str], Cell]
PaperCells = dict[tuple[str, str], numbers.Cell]
Compared = tuple[tuple[TableCell | str, ...], Cell | None, numbers.Cell | None]  # what it is, ours, the paper's


def comparison(name: str, caption: str, columns: tuple[str, ...], rows: Iterable[Compared]) -> Table:
    """A row for each score that there is, under `columns` that say what it is, with the paper's beside it."""
    table = Table(name, caption, (*columns, *BESIDE))
    for what, cell, paper in rows:
        if cell is not None:
            table.add(*what, *beside_paper(cell, paper))
    return table


def _wide(name: str, games: Sequence[str], methods: Sequence[Method], cells: Cells, paper: PaperCells) -> Table:
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
    """The mean, which leads to its rows; a dash where there is none."""
    return number_cell(cell.estimate.value, digits, cell.entries) if cell else TableCell("–")


def beside_paper(cell: Cell, paper: numbers.Cell | None) -> list[TableCell]:
    """Mean, interval, runs, steps; the paper's score, the difference, and whether the intervals overlap."""
    value, runs = cell.estimate.value, len(cell.entries)
    who = TableCell(f"{runs} leaders" if cell.over == "leaders" else str(runs), runs)
    steps = TableCell(short_steps(cell.steps), cell.steps)
    ours = [mean_cell(cell), interval_cell(*cell.estimate[1:]), who, steps]
    if paper is None:
        return [*ours, *[TableCell("–")] * 3]
    overlap = "yes" if cell.estimate.overlaps(*paper.interval) else "no"
    overlap = "–" if math.isnan(cell.estimate.low) else overlap
    difference = number_cell(value - paper.mean, 2, sign=True)
    return [*ours, TableCell(str(paper), paper.mean), difference, TableCell(overlap)]


def leaders_note(methods: Mapping[Method, Sequence[str]]) -> str:
    """What intervals of these methods, whose runs in these games are leaders of few populations, leave out."""
    who = sentence([f"{method.label} on {sentence(games)}" for method, games in methods.items()])
    return f" Intervals of {who} are over leaders that share their members and the explorer." if methods else ""


def _normalized(table: ScoreTable, method: Method, game: str) -> Estimate | None:
    """The mean test score, normalised; None where there is none or the game has no constants."""
    cell = table.cell(method, game, "test") if table.is_normalizable(game) else None
    return Estimate(*(table.normalized(value, game) for value in cell.estimate)) if cell else None


def bar_section(table: ScoreTable, name: str, algorithms: Sequence[str], games: Sequence[str]) -> Section | None:
    """Normalised test scores; the built-in maze where none of the games was played."""
    methods = [Method(algorithm) for algorithm in algorithms]
    played = table.games(methods)
    shown = [game for game in games if game in played] or [game for game in STANDS_FOR if game in played]
    bars = {game: group for game in shown if (group := {m: e for m in methods if (e := _normalized(table, m, game))})}
    if not bars:
        return None
    quoted = {(game, Method(algorithm)): cell.mean for (algorithm, game), cell in numbers.scores("test").items()}
    paper = {(g, m): table.normalized(mean, g) for (g, m), mean in quoted.items() if g in bars and m in methods}
    figures = grouped_bars(bars, paper, "normalised test score")
    note = f"(R − R_min) / (R_max − R_min) on unseen levels, constants `{table.constants}`; 95 % intervals."
    note += leaders_note(table.over_leaders(methods, bars))
    words = f"Bars of normalised test scores for {', '.join(bars)}"
    return Section(name, note, figures=[(words, figure) for figure in figures])
