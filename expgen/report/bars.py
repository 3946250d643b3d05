"""Figures that compare methods: bars per game, aggregate metrics, score distributions."""

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from numpy import ndarray

from expgen.report.methods import Method
from expgen.report.statistics import METRICS, Estimate, Profile
from expgen.report.style import DASHES, HATCHES, PAPER, add_legend, color_of, error_bars, figure_style

Bars = Mapping[str, Mapping[Method, Estimate]]  # by game


def grouped_bars(
    bars: Bars, paper: Mapping[tuple[str, Method], float], ylabel: str, as_percent: bool = False
) -> Figure:
    """A group of bars per game, one per method, with intervals; diamonds are the paper's means."""
    methods = sorted({method for group in bars.values() for method in group}, key=lambda method: method.rank)
    with figure_style():
        figure = Figure(figsize=(max(4.5, 1.6 + 0.28 * len(bars) * (len(methods) + 1)), 3.2))
        axes = figure.add_subplot()
        width = 0.84 / len(methods)
        for place, method in enumerate(methods):
            at = [x - 0.42 + (place + 0.5) * width for x, game in enumerate(bars) if method in bars[game]]
            found = [bars[game][method] for game in bars if method in bars[game]]
            axes.bar(
                at, [e.value for e in found], width * 0.94, label=method.label, color=color_of(method),
                hatch=HATCHES[place % len(HATCHES)], edgecolor="black", linewidth=0.5,
                yerr=error_bars(found), error_kw={"elinewidth": 0.9, "capsize": 1.5},
            )  # fmt: skip
            quoted = [(x, paper[game, method]) for x, game in zip(at, _with(bars, method)) if (game, method) in paper]
            if quoted:
                axes.plot(*zip(*quoted), markersize=3.5, label=None, **PAPER)
        if paper:
            axes.plot([], [], markersize=3.5, label="paper", **PAPER)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(bars)), list(bars), rotation=0 if len(bars) < 7 else 35, ha="center")
        axes.grid(axis="x", visible=False)
        axes.set_ylabel(ylabel)
        if as_percent:
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        add_legend(figure, axes)
    return figure


def _with(bars: Bars, method: Method) -> list[str]:
    return [game for game in bars if method in bars[game]]


def aggregate_metrics(
    found: Mapping[Method, Mapping[str, Estimate]], paper: Mapping[Method, Mapping[str, float]]
) -> Figure:
    """Figure 7: a panel per metric, a bar per method from low to high with its value as a line."""
    methods = list(found)
    with figure_style():
        figure = Figure(figsize=(10, 0.9 + 0.34 * len(methods)))
        panels = figure.subplots(1, len(METRICS), sharey=True)
        for axes, metric in zip(panels, METRICS):
            for y, method in enumerate(methods):
                value, low, high = found[method][metric]
                axes.barh(y, high - low, 0.62, left=low, color=color_of(method), alpha=0.85)
                axes.vlines(value, y - 0.36, y + 0.36, color="black", linewidth=1.6)
                if method in paper:
                    axes.plot(paper[method][metric], y, markersize=4.5, **PAPER)
            axes.set_title(metric if metric != "optimality gap" else "optimality gap (lower is better)", fontsize=9)
            axes.set_yticks(range(len(methods)), [method.label for method in methods])
            axes.grid(axis="y", visible=False)
            ends = [end for method in methods for end in found[method][metric]]
            ends += [paper[method][metric] for method in paper]
            room = 0.06 * (max(ends) - min(ends)) or 0.1
            axes.set_xlim(min(ends) - room, max(ends) + room)
        panels[0].invert_yaxis()
        note = "   ◇ from the paper's table" if paper else ""
        figure.supxlabel("normalised score, 95 % interval over runs" + note, fontsize=9)
    return figure


def distributions(
    profiles: Mapping[Method, Profile], tau: ndarray, improvement: Mapping[tuple[Method, Method], Estimate]
) -> Figure:
    """Figure 6: share of runs above each normalised score, and P(X > Y)."""
    with figure_style():
        figure = Figure(figsize=(10, 3.2))
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.05))
        for place, (method, profile) in enumerate(profiles.items()):
            left.fill_between(tau, profile.low, profile.high, color=color_of(method), alpha=0.22, linewidth=0)
            dash = DASHES[place % len(DASHES)]
            left.plot(tau, profile.value, color=color_of(method), linestyle=dash, linewidth=1.6, label=method.label)
        left.set(xlabel="normalised score τ", ylabel="share of runs with score > τ", ylim=(0, 1.02))
        left.legend(fontsize=7.5)
        for y, ((_, other), estimate) in enumerate(improvement.items()):
            right.barh(y, estimate.high - estimate.low, 0.6, left=estimate.low, color=color_of(other), alpha=0.85)
            right.vlines(estimate.value, y - 0.34, y + 0.34, color="black", linewidth=1.6)
            right.text(1.03, y, f"{estimate.value:.2f}", va="center", fontsize=8)
        right.axvline(0.5, color="black", linewidth=0.8, linestyle=":")
        right.set_yticks(range(len(improvement)), [f"{one.label} > {other.label}" for one, other in improvement])
        right.set(xlim=(0, 1.12), xlabel="probability of improvement")
        right.grid(axis="y", visible=False)
        right.invert_yaxis()
    return figure
