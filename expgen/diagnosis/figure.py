"""Figure of a diagnosis: returns by player and split, agreement before success, coverage of explorer and chance."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from expgen.colors import ALGORITHMS, ROLES
from expgen.diagnosis.measure import NEAR, Measurements
from expgen.evaluation.scores import SPLITS
from expgen.report.statistics import Estimate
from expgen.report.style import INK, SPLIT_COLORS, error_bars, figure_style


def draw(measured: Measurements) -> Figure:
    """Return a figure with three panels."""
    with figure_style():
        figure = Figure(figsize=(11, 3.4))
        returns, agreement, coverage = figure.subplots(1, 3)
        _returns(returns, measured)
        _agreement(agreement, measured)
        _coverage(coverage, measured)
        figure.suptitle(f"{measured.name}: {measured.episodes} episodes per player and split", parse_math=False)
    return figure


def _returns(axes: Axes, measured: Measurements) -> None:
    players = list(dict.fromkeys(play.player for play in measured.plays))
    for index, split in enumerate(SPLITS):
        plays = [play for play in measured.plays if play.split == split]
        at = [players.index(play.player) + 0.4 * index - 0.2 for play in plays]
        found = [Estimate(p.evaluation.mean_return, p.evaluation.ci_low, p.evaluation.ci_high) for p in plays]
        if plays:
            label = {"train": "training levels", "test": "unseen levels"}[split]
            axes.bar(at, [e.value for e in found], 0.38, yerr=error_bars(found), capsize=2, label=label,
                     color=SPLIT_COLORS[split], ecolor=INK)  # fmt: skip
    axes.set_xticks(range(len(players)), players)
    axes.set(title="gap", ylabel="return")
    axes.legend()


def _agreement(axes: Axes, measured: Measurements) -> None:
    axes.set(title="agreement", xlabel="steps before success", ylabel="share of members that agree")
    votes = measured.votes
    if votes is None or np.isnan(votes.before_success).all():
        axes.text(0.5, 0.5, "no votes before a success", ha="center", transform=axes.transAxes)
        return
    steps = 1 + np.arange(len(votes.before_success))
    axes.plot(steps, votes.before_success, "o-", markersize=3, label="solved episodes", color=ALGORITHMS["expgen"])
    if not np.isnan(votes.far):
        axes.axhline(votes.far, color=INK, linestyle="--", label=f"mean beyond {NEAR} steps\nor without success")
    axes.axhline(votes.quorum / votes.members, color=INK, linestyle=":", label="quorum")
    axes.set_ylim(0, 1.05)
    axes.invert_xaxis()
    axes.legend()


def _coverage(axes: Axes, measured: Measurements) -> None:
    axes.set(title="coverage", ylabel="new frames per episode")
    shown = [play for play in measured.plays if play.exploration and play.split == measured.main_split]
    found = [Estimate(*play.exploration.novelty) for play in shown if play.exploration]
    names = [str(play.player) for play in shown]
    axes.bar(names, [e.value for e in found], 0.6, yerr=error_bars(found), capsize=3, ecolor=INK,
             color=[ROLES[name] for name in names])  # fmt: skip
