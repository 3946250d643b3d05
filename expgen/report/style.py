"""How figures look: colours that the colour-blind can tell apart (Paul Tol's), and marks that survive a grey print."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from expgen.report.methods import Method
from expgen.report.statistics import Estimate

COLORS = {
    "random": "#BBBBBB", "ppo": "#88CCEE", "ppo-gru": "#6699CC", "mixed": "#EE7733", "plr": "#DDCC77",
    "ucb-drac": "#999933", "ppg": "#44AA99", "daac": "#AA4499", "idaac": "#117733", "leep": "#332288",
    "maxent": "#EE9955", "expgen": "#CC3311", "expgen-idaac": "#661100",
}  # fmt: skip
SPLIT_COLORS = {"train": "#EE7733", "test": "#0077BB"}  # the paper's: train orange, test blue
SEQUENCE = ("#332288", "#117733", "#44AA99", "#DDCC77", "#CC6677", "#882255")  # variants of one method, in order
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
DASHES = ("-", "--", "-.", ":")
PAPER: dict[str, Any] = {
    "marker": "D",
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "color": "black",
    "linestyle": "none",
}
_RC: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "expgen",  # the same figure is the same file
    "svg.fonttype": "path",
    "figure.constrained_layout.use": True,
}


@contextlib.contextmanager
def figure_style() -> Iterator[None]:
    """Drawing and saving happen under these settings; the caller's stay as they were."""
    with rc_context(_RC):
        yield


def color_of(method: Method) -> str:
    """An algorithm has the same colour in every figure."""
    return COLORS.get(method.algorithm, "#555555")


def save_figure(figure: Figure, file: Path) -> None:
    """FILE.svg for print and the page, FILE.png for slides."""
    with figure_style():
        figure.savefig(file.with_suffix(".svg"), metadata={"Date": None})
        figure.set_layout_engine("none")  # it is laid out
        figure.savefig(file.with_suffix(".png"), dpi=160)


def add_legend(figure: Figure, *panels: Axes) -> None:
    """To the right of everything, each label once."""
    known = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if known:
        figure.legend(list(known.values()), list(known), loc="outside right upper", fontsize=8)


def error_bars(found: Sequence[Estimate]) -> list[list[float]]:
    """How far intervals reach below and above their values; nothing where there is no interval."""
    low = [max(0.0, estimate.value - estimate.low) for estimate in found]
    high = [max(0.0, estimate.high - estimate.value) for estimate in found]
    return [[0.0 if math.isnan(reach) else reach for reach in side] for side in (low, high)]
