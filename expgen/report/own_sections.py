"""Sections that the paper does not have: train against test, scores of other environments, every setting."""

from collections.abc import Sequence

from expgen.evaluation.scores import SPLITS
from expgen.report.bars import Pair, dumbbells
from expgen.report.methods import Method
from expgen.report.score_sections import comparison_cells, leaders_note, mean_cell
from expgen.report.score_table import ScoreTable
from expgen.report.section import NOTES, Section, join_words
from expgen.report.tables import Table, percent_cell


def glance_section(table: ScoreTable) -> Section:
    """Return a figure per game with the train and test score of every method in its default settings."""
    shown: dict[str, dict[Method, Pair]] = {}
    for game in table.games():
        methods = [m for m in table.methods() if m.is_default or m.settings == (("fallback", "random"),)]
        pairs = {m: (table.cell(m, game, "train"), test) for m in methods if (test := table.cell(m, game, "test"))}
        if len(pairs) > 1:
            shown[game] = pairs
    leaders = leaders_note(table, dict.fromkeys(method for pairs in shown.values() for method in pairs), shown)
    figures = [(f"Train and test scores on {game}", dumbbells(game, pairs)) for game, pairs in shown.items()]
    return Section("glance", NOTES["glance"] + leaders, figures=figures, heading="At a glance")


def own_scores_section(table: ScoreTable) -> Section:
    """Return train score, test score and gap of every method in its default settings, without the paper's numbers."""
    methods = [method for method in table.methods() if method.is_default]
    result = _setting_rows(table, methods, "scores", "Mean return by game and method.")
    return Section("scores", NOTES["settings"], [result], heading=f"Scores on {join_words(table.games(methods))}")


def every_setting(table: ScoreTable) -> Section:
    """Return train score, test score and gap of every method and setting."""
    result = _setting_rows(table, table.methods(), "everything", "All methods and settings.")
    return Section("everything", NOTES["settings"], [result], heading="All methods and settings")


def _setting_rows(table: ScoreTable, methods: Sequence[Method], name: str, caption: str) -> Table:
    columns = ("game", "method", "train", "test", "95 % interval", "runs", "gap", "solved, test", "steps")
    result = Table(name, caption, columns)
    for method in methods:
        for game in table.games([method]):
            train, test = (table.cell(method, game, split) for split in SPLITS)
            gap, shown = table.gap(method, game), test or train
            if shown is None:
                continue
            _, interval, runs, steps = comparison_cells(shown, None)[:4]
            solved = [entry.row.solved_rate for entry in test.entries] if test else []
            result.add(
                game, method.label, mean_cell(train), mean_cell(test), interval if test else "–", runs,
                percent_cell(gap and gap.value), percent_cell(sum(solved) / len(solved)) if solved else "–", steps,
            )  # fmt: skip
    return result
