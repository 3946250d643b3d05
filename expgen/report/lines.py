"""Figures with an x axis: scores against steps, training levels or a setting."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy import ndarray

from expgen.report.statistics import Estimate
from expgen.report.style import DASHES, PAPER, SEQUENCE, SPLIT_COLORS, add_legend, error_bars, figure_style

Curves = Mapping[tuple[int, int], ndarray]  # by run, [points, 2]: steps and score
Lines = Mapping[str, Mapping[float, Estimate]]  # by label: value with spread, by place on the x axis


def over_levels(
    panels: Mapping[tuple[str, str], Lines], ylabels: Mapping[str, str], xlabel: str = "training levels"
) -> Figure:
    """Figures 4 and 11: panels by (what, game), train and test against the number of training levels."""
    whats, games = (list(dict.fromkeys(key[place] for key in panels)) for place in (0, 1))
    with figure_style():
        figure = Figure(figsize=(1 + 2.9 * len(games), 0.5 + 2.3 * len(whats)))
        grid = figure.subplots(len(whats), len(games), squeeze=False, sharex=True)
        for (what, game), lines in panels.items():
            axes = grid[whats.index(what)][games.index(game)]
            for place, (label, points) in enumerate(lines.items()):
                _band(axes, label, points, place)
            axes.set_title(game, fontsize=9)
            ticks = sorted({x for points in lines.values() for x in points})
            if len(ticks) > 1:
                axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
            axes.minorticks_off()
            if game == games[0]:
                axes.set_ylabel(ylabels[what])
            if whats.index(what) == len(whats) - 1:
                axes.set_xlabel(xlabel)
        for row in grid:
            for axes in row:
                axes.set_visible(axes.has_data())
        add_legend(figure, *grid[:, 0])
    return figure


def _band(axes: Axes, label: str, points: Mapping[float, Estimate], place: int) -> None:
    split = next((split for split in SPLIT_COLORS if split in label), None)
    color = SPLIT_COLORS[split] if split else SEQUENCE[place % len(SEQUENCE)]
    dash = "--" if "no memory" in label or "GRU" in label else "-"
    x = sorted(points)
    low, high = [points[at].low for at in x], [points[at].high for at in x]
    axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
    axes.plot(x, [points[at].value for at in x], dash, color=color, marker="o" if split == "train" else "s",
              markersize=4, label=label)  # fmt: skip


def curve_panels(
    panels: Mapping[str, Mapping[str, Curves]],
    ylabel: str,
    colors: Mapping[str, str],
    levels: Mapping[str, float] | None = None,
    each_run: bool = False,
    median: bool = False,
) -> Figure:
    """Scores against steps, a panel per title, a mean with a band per label; `levels` are horizontal lines.

    The band is one standard deviation over runs; with `each_run` every run is a thin line instead.
    """
    with figure_style():
        figure = Figure(figsize=(max(4.6, 0.8 + 3.1 * len(panels)), 3.0))
        grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, (title, lines) in zip(grid, panels.items()):
            for place, (label, curves) in enumerate(lines.items()):
                steps, stacked = on_one_grid(list(curves.values()))
                color, dash = colors[label], DASHES[place % len(DASHES)]
                mean = stacked.mean(axis=0)
                if each_run:
                    axes.plot(steps, stacked.T, color=color, linewidth=0.7, alpha=0.45)
                else:
                    spread = stacked.std(axis=0)
                    axes.fill_between(steps, mean - spread, mean + spread, color=color, alpha=0.18, linewidth=0)
                mark = "o" if len(steps) < 12 else None
                axes.plot(steps, mean, dash, color=color, linewidth=1.8, marker=mark, markersize=3, label=label)
                if median:
                    axes.plot(steps, np.median(stacked, axis=0), ":", color=color, label=f"{label}, median")
            for place, (label, value) in enumerate((levels or {}).items()):
                axes.axhline(value, color="black", linewidth=1, linestyle=DASHES[1 + place % 3], label=label)
            axes.set_title(title, fontsize=9)
            axes.set_xlabel("environment steps")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short_steps(x)))
        grid[0].set_ylabel(ylabel)
        add_legend(figure, *grid)
    return figure


def on_one_grid(curves: Sequence[ndarray]) -> tuple[ndarray, ndarray]:
    """Steps that all runs have covered, and every run's score there by interpolation: `[points]`, `[runs, points]`."""
    end = min(curve[-1, 0] for curve in curves)
    start = max(curve[0, 0] for curve in curves)
    steps = np.unique(np.concatenate([curve[:, 0] for curve in curves]))
    inside = steps[(steps >= start) & (steps <= end)]
    steps = inside if len(inside) else np.array([end])
    return steps, np.stack([np.interp(steps, curve[:, 0], curve[:, 1]) for curve in curves])


def settings_line(points: Mapping[float, Estimate], paper: Mapping[float, float], xlabel: str, ylabel: str) -> Figure:
    """A score against one setting, with the paper's as diamonds."""
    with figure_style():
        figure = Figure(figsize=(4.6, 2.9))
        axes = figure.add_subplot()
        x = sorted(points)
        found = [points[at] for at in x]
        axes.errorbar(
            x, [e.value for e in found], yerr=error_bars(found), color="#CC3311", marker="o", capsize=2, label="ours"
        )
        if paper:
            axes.plot(list(paper), list(paper.values()), markersize=5, label="paper", **PAPER)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.set_xticks(sorted({*points, *paper}))
        axes.legend()
    return figure


def short_steps(steps: float) -> str:
    """`25M`, `1.5M`, `4k`."""
    for scale, letter in ((1e6, "M"), (1e3, "k")):
        if steps >= scale:
            return f"{steps / scale:.3g}{letter}"
    return f"{steps:.0f}"
