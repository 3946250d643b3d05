"""Sections beside the paper's: train against test, training curves, scores of any environment, every setting."""

import math
from collections.abc import Sequence

from numpy import ndarray

from expgen.colors import color_of
from expgen.evaluation.scores import SPLITS
from expgen.report.bars import Pair, dumbbells
from expgen.report.curves import Curve
from expgen.report.lines import curve_panel
from expgen.report.methods import Method
from expgen.report.score_sections import beside_paper, leaders_note
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section, sentence
from expgen.report.tables import Table, number_cell, percent_cell

POINTS = 3  # of a curve at least
BAND = "Bands are one standard deviation over seeds."
SETTINGS_NOTE = (
    "Means over runs or leaders that were trained for as many steps; the interval is that of the test score. Gap: "
    "(R_train − R_test) / R_train, of the runs that have both after the same steps."
)


def glance_section(table: ScoreTable) -> Section | None:
    """For each game, every plain method's train and test score."""
    shown: dict[str, dict[Method, Pair]] = {}
    for game in table.games():
        methods = [m for m in table.methods() if m.has_only() or m.settings == (("fallback", "random"),)]
        pairs = {m: (table.cell(m, game, "train"), test) for m in methods if (test := table.cell(m, game, "test"))}
        if len(pairs) > 1:
            shown[game] = pairs
    if not shown:
        return None
    note = (
        "Methods by their default settings; all others are under “Every method and setting”. Mean return on the levels "
        "trained on and on unseen ones, with the 95 % interval of the latter; best at the top. A long line is a method "
        "that has learnt its levels rather than the game."
    ) + leaders_note(table.over_leaders({method: None for pairs in shown.values() for method in pairs}, shown))
    figures = tuple((f"Train and test scores on {game}", dumbbells(game, pairs)) for game, pairs in shown.items())
    return Section("glance", note, figures=figures, heading="At a glance")


def training_section(table: ScoreTable, curves: Sequence[Curve]) -> Section | None:
    """Returns while training: of training episodes, and on unseen levels where runs were scored on the way."""
    points = table.where(lambda entry: math.isnan(entry.row.ci_low))  # an evaluation has an interval
    figures = []
    for game in dict.fromkeys([*table.games(), *(curve.game for curve in curves)]):
        trained: dict[Method, dict[object, ndarray]] = {}
        for curve in curves:
            if curve.game == game:
                trained.setdefault(Method(curve.method), {})[curve.learner] = curve.points
        tested = {m: points.curves(m, game, "test") for m in points.methods() if m.has_only()}
        for ylabel, found in (("return of training episodes", trained), ("return on unseen levels", tested)):
            long = {m: {run: c for run, c in runs.items() if len(c) >= POINTS} for m, runs in found.items()}
            lines = {f"{m.label} ({len(runs)})": runs for m, runs in long.items() if runs}
            colors = {f"{m.label} ({len(runs)})": color_of(m.algorithm) for m, runs in long.items()}
            if lines:
                words = f"{ylabel} on {game} against steps, by method"
                figures.append((words, curve_panel(game, lines, ylabel, colors)))
    note = (
        f"Mean return against steps while training; in brackets how many seeds. {BAND} A return of training episodes "
        "is a mean over the last hundred, played by weights that changed meanwhile: no score, and in no table."
    )
    return Section("training", note, figures=tuple(figures), heading="Training curves") if figures else None


def own_scores_section(table: ScoreTable) -> Section | None:
    """Train, test and gap of every plain method, for environments that the paper has no numbers for."""
    methods = [method for method in table.methods() if method.has_only()]
    result = _setting_rows(table, methods, "scores", "Mean return by game and method.")
    heading = f"Scores on {sentence(table.games(methods))}"
    return Section("scores", SETTINGS_NOTE, (result,), heading=heading) if result.rows else None


def every_setting(table: ScoreTable) -> Section | None:
    """Train, test and gap of everything that was scored."""
    result = _setting_rows(table, table.methods(), "everything", "All methods and settings.")
    return Section("everything", SETTINGS_NOTE, (result,), heading="Every method and setting") if result.rows else None


def _setting_rows(table: ScoreTable, methods: Sequence[Method], name: str, caption: str) -> Table:
    columns = ("game", "method", "train", "test", "95 % interval", "runs", "gap", "solved, test", "steps")
    result = Table(name, caption, columns)
    for method in methods:
        for game in table.games([method]):
            train, test = (table.cell(method, game, split) for split in SPLITS)
            shown = test or train
            if shown is None:
                continue
            gap = table.gap(method, game)
            mean, interval, runs, steps = beside_paper(shown, None)[:4]
            solved = [entry.row.solved_rate for entry in test.entries] if test else []
            result.add(
                game, method.label, number_cell(train.estimate.value, 2, train.entries) if train else "–",
                mean if test else "–", interval if test else "–", runs, percent_cell(gap and gap.value),
                percent_cell(sum(solved) / len(solved)) if solved else "–", steps,
            )  # fmt: skip
    return result
