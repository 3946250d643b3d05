"""Scores during training: Figures 5, 9 and 13, training curves, and scores of the last checkpoints."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from expgen.colors import color_of
from expgen.evaluation.scores import SPLITS
from expgen.report.curves import SCORED, Curve
from expgen.report.lines import Curves, curve_panel, short_steps
from expgen.report.methods import Method, number_of
from expgen.report.score_table import ScoreTable
from expgen.report.section import NOTES, Section
from expgen.report.style import SEQUENCE, SPLIT_COLORS
from expgen.report.tables import Table, TableCell, interval_cell, number_cell

SPLITS_SHOWN = {
    "figure-9": (Method("ppo-gru", (("hidden", "true"),)), NOTES["hidden"]),
    "figure-13": (Method("idaac", (("budget", "100M"),)), NOTES["long"]),
}  # by figure: the method whose train and test curves it shows, and its note
MIN_POINTS = 3  # of a training curve that is drawn
LAST = 5  # number of last scored checkpoints that are averaged
LATE = 0.75  # share of the training steps after which all of them must lie
CHECKPOINT_COLUMNS = ("game", "method", "split", "weights", "learners", "last checkpoint", "mean of the last five",
                      "range of the last five", "steps of the last five")  # fmt: skip


def mixture_section(table: ScoreTable) -> Section:
    """Return Figure 5: test curves by β, a panel per γ, with the final scores of PPO and ExpGen as horizontal lines."""
    mixed = [m for m in table.methods() if m.algorithm == "mixed" and {*dict(m.settings)} == {"beta", "gamma"}]
    mixed.sort(key=lambda method: (number_of(method.setting("gamma")), number_of(method.setting("beta"))))
    betas = sorted({m.setting("beta") for m in mixed}, key=number_of)
    colors = {f"β = {beta}": SEQUENCE[index % len(SEQUENCE)] for index, beta in enumerate(betas)}
    figures = []
    for game in table.games(mixed):
        panels: dict[str, dict[str, Curves]] = {}
        for method in mixed:
            if curves := table.curves(method, game, "test"):
                lines = panels.setdefault(f"γ = {method.setting('gamma')}", {})
                lines[f"β = {method.setting('beta')}"] = curves
        cells = {m.label: table.cell(m, game, "test") for m in (Method("ppo"), Method("expgen"))}
        references = {label: cell.estimate.value for label, cell in cells.items() if cell}
        for title, lines in panels.items():
            alt_text = f"Test return on {game} of policies on the mixed reward, by β, with {title}"
            figures.append((alt_text, curve_panel(title, lines, f"test return, {game}", colors, references)))
    return Section("figure-5", NOTES["mixture"], figures=figures)


def splits_section(table: ScoreTable, name: str) -> Section:
    """Return Figure 9, with each run as a thin line, or Figure 13, with the median."""
    method, note = SPLITS_SHOWN[name]
    figures = []
    for game in table.games([method]):
        lines: dict[str, Curves] = {split: found for split in SPLITS if (found := table.curves(method, game, split))}
        style = {"each_run": name == "figure-9", "median": name == "figure-13"}
        figure = curve_panel(game, lines, "return", SPLIT_COLORS, None, **style)
        figures.append((f"Train and test return of {method.label} on {game} against steps", figure))
    return Section(name, note, figures=figures)


def training_section(table: ScoreTable, curves: Sequence[Curve]) -> Section:
    """Return curves of training episodes and, for runs that were scored during training, of unseen levels."""
    points = table.where(lambda entry: math.isnan(entry.row.ci_low))  # an evaluation has an interval
    figures = []
    for game in dict.fromkeys([*table.games(), *(curve.game for curve in curves)]):
        trained: defaultdict[Method, dict[object, ndarray]] = defaultdict(dict)
        for curve in curves:
            if curve.game == game:
                trained[Method(curve.method)][curve.learner] = curve.points
        tested = {m: points.curves(m, game, "test") for m in points.methods() if m.is_default}
        for ylabel, found in (("return of training episodes", trained), ("return on unseen levels", tested)):
            long = {m: {run: c for run, c in runs.items() if len(c) >= MIN_POINTS} for m, runs in found.items()}
            lines = {f"{m.label} ({len(runs)})": runs for m, runs in long.items() if runs}
            colors = {f"{m.label} ({len(runs)})": color_of(m.algorithm) for m, runs in long.items()}
            if lines:
                alt_text = f"{ylabel} on {game} against steps, by method"
                figures.append((alt_text, curve_panel(game, lines, ylabel, colors)))
    return Section("training", NOTES["training"], figures=figures, heading="Training curves")


def checkpoint_section(curves: Sequence[Curve]) -> Section:
    """Return the score of the last checkpoint and the mean over the last five scored ones, by game and method."""
    last: defaultdict[tuple[str, Method, str], list[ndarray]] = defaultdict(list)
    for curve in curves:
        for column, points in curve.scored.items():
            if len(points) >= LAST and points[-LAST, 0] >= LATE * points[-1, 0]:
                last[curve.game, Method(curve.method), column].append(points[-LAST:])
    caption = "Score of the last checkpoint and mean over the last five scored checkpoints."
    result = Table("checkpoints", caption, CHECKPOINT_COLUMNS)
    for game, method, column in sorted(last, key=lambda key: (key[0], key[1].rank, SCORED.index(key[2]))):
        steps, score = np.moveaxis(np.stack(last[game, method, column]), 2, 0)  # [learners, LAST] each
        split, weights = "train" if "train" in column else "test", "average" if "average" in column else "live"
        means = number_cell(float(score[:, -1].mean())), number_cell(float(score.mean()))
        result.add(
            game, method.label, split, weights, number_cell(len(score), 0), *means,
            interval_cell(float(score.min()), float(score.max())),
            TableCell(f"{short_steps(steps.min())} to {short_steps(steps.max())}", float(steps.max())),
        )  # fmt: skip
    return Section("checkpoints", NOTES["checkpoints"], [result], heading="Last checkpoint and last five")
