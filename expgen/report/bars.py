"""Figures that compare methods: bars by game, aggregate metrics, score distributions, train against test."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy import ndarray

from expgen.colors import color_of
from expgen.report.methods import Method
from expgen.report.score_table import Cell
from expgen.report.statistics import METRICS, Estimate, Profile
from expgen.report.style import DASHES, HATCHES, INK, PAPER, SPLIT_COLORS, error_bars, panel

Bars = Mapping[str, Mapping[Method, Estimate]]  # by game
Pair = tuple[Cell | None, Cell]  # train and test
MAX_BARS = 26  # per panel


def grouped_bars(
    bars: Bars, paper: Mapping[tuple[str, Method], float], xlabel: str, as_percent: bool = False
) -> list[Figure]:
    """Draw a group of bars per game, one bar per method, with intervals; diamonds are the paper's means.

    Returns as many figures as are needed for at most MAX_BARS bars in each.
    """
    methods = sorted({method for group in bars.values() for method in group}, key=lambda method: method.rank)
    if not methods:
        return []
    figures, all_games, games_per_panel = [], list(bars), max(1, MAX_BARS // len(methods))
    thickness = 0.84 / len(methods)
    for start in range(0, len(all_games), games_per_panel):
        games = all_games[start : start + games_per_panel]
        height = 0.9 + 0.14 * len(methods) + max(0.2, 0.16 * len(methods)) * len(games)
        with panel("", height) as (figure, axes):
            for index, method in enumerate(methods):
                shift = (index + 0.5) * thickness - 0.42
                at = {game: y + shift for y, game in enumerate(games) if method in bars[game]}
                found = [bars[game][method] for game in at]
                axes.barh(
                    list(at.values()), [e.value for e in found], thickness * 0.94, label=method.label,
                    color=color_of(method.algorithm), hatch=HATCHES[index % len(HATCHES)], edgecolor=INK,
                    linewidth=0.5, xerr=error_bars(found),
                    error_kw={"elinewidth": 0.9, "capsize": 1.5, "ecolor": INK},
                )  # fmt: skip
                quoted = [(paper[game, method], y) for game, y in at.items() if (game, method) in paper]
                if quoted:
                    axes.plot(*zip(*quoted), markersize=3.5, label=None, **PAPER)
            if paper:
                axes.plot([], [], markersize=3.5, label="paper", **PAPER)
            axes.axvline(0, color=INK, linewidth=0.8)
            axes.set_yticks(range(len(games)), games)
            axes.invert_yaxis()
            axes.grid(axis="y", visible=False)
            axes.set_xlabel(xlabel)
            if as_percent:
                axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        figures.append(figure)
    return figures


def aggregate_metrics(
    found: Mapping[Method, Mapping[str, Estimate]], paper: Mapping[Method, Mapping[str, float]]
) -> dict[str, Figure]:
    """Draw Figure 7, one panel per metric: a bar per method from low to high, with its value as a line."""
    methods = list(found)
    figures = {}
    for metric in METRICS:
        title = metric if metric != "optimality gap" else "optimality gap (lower is better)"
        with panel(title, 0.9 + 0.28 * len(methods)) as (figures[metric], axes):
            _intervals(axes, {method: found[method][metric] for method in methods})
            for y, method in enumerate(methods):
                if method in paper:
                    axes.plot(paper[method][metric], y, markersize=4.5, **PAPER)
            axes.set_xlabel("normalised score" + (", ◇ from the paper's Table 1" if paper else ""))
            ends = [end for method in methods for end in found[method][metric]]
            ends += [paper[method][metric] for method in paper]
            margin = 0.06 * (max(ends) - min(ends)) or 0.1
            axes.set_xlim(min(ends) - margin, max(ends) + margin)
            axes.locator_params(axis="x", nbins=4)  # more labels of three decimals overlap
    return figures


def _intervals(axes: Axes, found: Mapping[Method, Estimate]) -> None:
    """Draw a bar per method from low to high, with its value as a line, the first method at the top."""
    for y, (method, (value, low, high)) in enumerate(found.items()):
        axes.barh(y, high - low, 0.62, left=low, color=color_of(method.algorithm), alpha=0.85)
        axes.vlines(value, y - 0.36, y + 0.36, color=INK, linewidth=1.6)
    axes.set_yticks(range(len(found)), [method.label for method in found])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)


def distributions(profiles: Mapping[Method, Profile], tau: ndarray) -> Figure:
    """Draw Figure 6, left: the share of runs above each normalised score."""
    with panel("", 3.0 + 0.09 * len(profiles)) as (figure, axes):
        for index, (method, profile) in enumerate(profiles.items()):
            color = color_of(method.algorithm)
            axes.fill_between(tau, profile.low, profile.high, color=color, alpha=0.22, linewidth=0)
            dash = DASHES[index % len(DASHES)]
            axes.plot(tau, profile.value, color=color, linestyle=dash, linewidth=1.6, label=method.label)
        axes.set(xlabel="normalised score τ", ylabel="share of runs with score > τ", ylim=(0, 1.02))
    return figure


def improvements(found: Mapping[Method, Estimate], reference: Method) -> Figure:
    """Draw Figure 6, right: the probability that a run of `reference` scores above one of each other method."""
    with panel(f"P({reference.label} scores above …)", 0.9 + 0.28 * len(found)) as (figure, axes):
        _intervals(axes, found)
        for y, estimate in enumerate(found.values()):
            axes.text(1.02, y, f"{estimate.value:.2f}", va="center")
        axes.axvline(0.5, color=INK, linewidth=0.8, linestyle=":")
        axes.set(xlim=(0, 1.18), xlabel="probability of improvement")
    return figure


def dumbbells(game: str, pairs: Mapping[Method, Pair]) -> Figure:
    """Draw a line per method from its train to its test score, the best test score at the top."""
    order = sorted(pairs, key=lambda method: pairs[method][1].estimate.value)
    with panel(game, 0.9 + 0.26 * len(order)) as (figure, axes):
        for y, method in enumerate(order):
            train, test = pairs[method]
            if train is not None:
                axes.plot([train.estimate.value, test.estimate.value], [y, y], color="#9aa3af", linewidth=2.5, zorder=1)
        trained = [(train.estimate.value, y) for y, m in enumerate(order) if (train := pairs[m][0]) is not None]
        if trained:
            color = SPLIT_COLORS["train"]
            axes.plot(*zip(*trained), "o", markerfacecolor="white", color=color, label="train", zorder=2)
        found = [pairs[method][1].estimate for method in order]
        axes.errorbar(
            [estimate.value for estimate in found], range(len(order)), xerr=error_bars(found), fmt="s",
            color=SPLIT_COLORS["test"], capsize=2, elinewidth=1, label="test", zorder=3,
        )  # fmt: skip
        axes.set_yticks(range(len(order)), [method.label for method in order])
        axes.set_ylim(-0.5, len(order) - 0.5)
        axes.set_xlabel("mean return")
        axes.grid(axis="y", visible=False)
    return figure
