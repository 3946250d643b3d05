"""The first thing on the page: how much of what each method learnt is left on unseen levels."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from expgen.report.methods import Method
from expgen.report.score_sections import leaders_note
from expgen.report.score_table import Cell, ScoreTable
from expgen.report.section import Section
from expgen.report.style import SPLIT_COLORS, add_legend, error_bars, figure_style

COLUMNS = 4
Pair = tuple[Cell | None, Cell]  # train and test


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
        "Mean return on the levels trained on and on unseen ones, with the 95 % interval of the latter; best at the "
        "top. A long line is a method that has learnt its levels rather than the game."
    ) + leaders_note(table.over_leaders({method: None for pairs in shown.values() for method in pairs}, shown))
    figure = dumbbells(shown)
    return Section("glance", note, figures=((f"Train and test scores on {', '.join(shown)}", figure),),
                   heading="At a glance")  # fmt: skip


def dumbbells(shown: Mapping[str, Mapping[Method, Pair]]) -> Figure:
    """A panel per game, a line per method from its train to its test score."""
    columns = min(COLUMNS, len(shown))
    rows = math.ceil(len(shown) / columns)
    most = max(map(len, shown.values()))
    with figure_style():
        figure = Figure(figsize=(2.0 + 2.6 * max(columns, 2), 0.6 + rows * (0.5 + 0.26 * most)))
        grid = figure.subplots(rows, columns, squeeze=False)
        panels = [axes for row in grid for axes in row]
        for axes, (game, pairs) in zip(panels, shown.items()):
            order = sorted(pairs, key=lambda method: pairs[method][1].estimate.value)
            _draw(axes, [pairs[method] for method in order])
            axes.set_yticks(range(len(order)), [method.label for method in order], fontsize=8)
            axes.set_title(game, fontsize=9)
            axes.grid(axis="y", visible=False)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        add_legend(figure, panels[0])
    return figure


def _draw(axes: Axes, pairs: Sequence[Pair]) -> None:
    for y, (train, test) in enumerate(pairs):
        if train is not None:
            axes.plot([train.estimate.value, test.estimate.value], [y, y], color="#c4c4c4", linewidth=2.5, zorder=1)
    trained = [(train.estimate.value, y) for y, (train, _) in enumerate(pairs) if train is not None]
    if trained:
        axes.plot(*zip(*trained), "o", markerfacecolor="white", color=SPLIT_COLORS["train"], label="train", zorder=2)
    found = [test.estimate for _, test in pairs]
    axes.errorbar(
        [estimate.value for estimate in found], range(len(pairs)), xerr=error_bars(found), fmt="s",
        color=SPLIT_COLORS["test"], capsize=2, elinewidth=1, label="test", zorder=3,
    )  # fmt: skip
