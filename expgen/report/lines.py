"""Figures with an x axis: scores against steps, training levels or a setting."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy import ndarray

from expgen.colors import color_of
from expgen.report.statistics import Estimate
from expgen.report.style import DASHES, INK, PAPER, SPLIT_COLORS, error_bars, panel

Curves = Mapping[Any, ndarray]  # by run, [points, 2]: steps and score
Lines = Mapping[str, Mapping[float, Estimate]]  # by label, `train` or `test, GRU`: estimates by x value
MAX_POINTS = 120  # of a curve that is drawn


def over_levels(game: str, ylabel: str, lines: Lines) -> Figure:
    """Draw a panel of Figure 4 or 11: train and test scores against the number of training levels."""
    with panel(game, 2.9) as (figure, axes):
        for label, points in lines.items():
            split = label.partition(",")[0]
            color = SPLIT_COLORS[split]
            dash = "--" if "no memory" in label or "GRU" in label else "-"
            x = sorted(points)
            low, high = [points[at].low for at in x], [points[at].high for at in x]
            axes.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)
            axes.plot(x, [points[at].value for at in x], dash, color=color, marker="o" if split == "train" else "s",
                      markersize=4, label=label)  # fmt: skip
        ticks = sorted({x for points in lines.values() for x in points})
        if len(ticks) > 1:
            axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axes.minorticks_off()
        axes.set(xlabel="training levels", ylabel=ylabel)
    return figure


def curve_panel(
    title: str,
    lines: Mapping[str, Curves],
    ylabel: str,
    colors: Mapping[str, str],
    references: Mapping[str, float] | None = None,
    each_run: bool = False,
    median: bool = False,
) -> Figure:
    """Draw scores against steps: for each label the mean over runs with a band of one standard deviation.

    references: horizontal lines by label. each_run: draw every run as a thin line instead of the band. median: add it.
    """
    with panel(title, 3.0 + 0.09 * len(lines)) as (figure, axes):
        for index, (label, curves) in enumerate(lines.items()):
            steps, stacked = interpolate_runs(list(curves.values()))
            color, dash = colors[label], DASHES[index % len(DASHES)]
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
        for index, (label, value) in enumerate((references or {}).items()):
            axes.axhline(value, color=INK, linewidth=1, linestyle=DASHES[1 + index % 3], label=label)
        axes.set(xlabel="environment steps", ylabel=ylabel)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short_steps(x)))
        axes.locator_params(axis="x", nbins=6)
    return figure


def interpolate_runs(curves: Sequence[ndarray]) -> tuple[ndarray, ndarray]:
    """Return steps that all runs cover, `[points]`, and the interpolated score of each run there, `[runs, points]`."""
    end = min(curve[-1, 0] for curve in curves)
    start = max(curve[0, 0] for curve in curves)
    steps = np.unique(np.concatenate([curve[:, 0] for curve in curves]))
    inside = steps[(steps >= start) & (steps <= end)]
    steps = inside if len(inside) else np.array([end])
    if len(steps) > MAX_POINTS:
        steps = np.linspace(start, end, MAX_POINTS)
    return steps, np.stack([np.interp(steps, curve[:, 0], curve[:, 1]) for curve in curves])


def settings_line(points: Mapping[float, Estimate], paper: Mapping[float, float], xlabel: str, ylabel: str) -> Figure:
    """Draw a score against one setting, with the paper's scores as diamonds."""
    with panel("", 2.9) as (figure, axes):
        x = sorted(points)
        found = [points[at] for at in x]
        axes.errorbar(x, [e.value for e in found], yerr=error_bars(found), color=color_of("expgen"), marker="o",
                      capsize=2, label="ours")  # fmt: skip
        if paper:
            axes.plot(list(paper), list(paper.values()), markersize=5, label="paper", **PAPER)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.set_xticks(sorted({*points, *paper}))
    return figure


def short_steps(steps: float) -> str:
    """Return a step count with three significant digits: `1.1B`, `25M`, `4.1k`."""
    for scale, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if steps >= 0.9995 * scale:  # rounds up to the scale
            return f"{float(f'{steps / scale:.3g}'):g}{letter}"
    return f"{steps:.0f}"
