"""How figures look: panels as wide as a phone, so that text is never smaller than a page's own."""

import contextlib
import io
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from expgen.report.statistics import Estimate

WIDTH = 3.9  # inches of a panel: 374 px
INK, GRID = "#1d2129", "#d3d8e0"  # the page puts its own colours for these
_ON_PAGE = {INK: "var(--xg-text)", GRID: "var(--xg-line)", "#ffffff": "none"}
SPLIT_COLORS = {"train": "#EE7733", "test": "#0077BB"}  # the paper's: train orange, test blue
SEQUENCE = ("#332288", "#117733", "#44AA99", "#DDCC77", "#CC6677", "#882255")  # variants of one method, in order
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
DASHES = ("-", "--", "-.", ":")
PAPER: dict[str, Any] = {
    "marker": "D",
    "markerfacecolor": "white",
    "markeredgecolor": INK,
    "color": INK,
    "linestyle": "none",
}
_RC: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "text.parse_math": False,  # names come from outside: a $ is a $
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "expgen",  # the same figure is the same file
    "svg.fonttype": "none",  # text stays text
    "figure.constrained_layout.use": True,
}


@contextlib.contextmanager
def figure_style() -> Iterator[None]:
    """Drawing and saving happen under these settings; the caller's stay as they were."""
    with rc_context(_RC):
        yield


@contextlib.contextmanager
def panel(title: str, height: float, legend: bool = True) -> Iterator[tuple[Figure, Axes]]:
    """An empty figure of one panel, `height` inches high, to draw on; its legend, if any, is put below it."""
    with figure_style():
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_subplot()
        yield figure, axes
        axes.set_title(title)
        handles, labels = axes.get_legend_handles_labels()
        if legend and handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=2, columnspacing=1, handlelength=1.8)


def figure_files(figure: Figure) -> dict[str, bytes]:
    """The figure as `.svg` for print and the page, and as `.png` for slides."""
    svg, png = io.BytesIO(), io.BytesIO()
    with figure_style():
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.set_layout_engine("none")  # it is laid out
        figure.savefig(png, format="png", dpi=160)
    return {".svg": svg.getvalue(), ".png": png.getvalue()}


def svg_for_page(svg: bytes) -> str:
    """An SVG file as a page carries it: no prologue, no ground of its own, ink and grid in the page's colours."""
    text = re.sub(r"<metadata>.*?</metadata>", "", svg.decode(), flags=re.DOTALL)
    for color, there in _ON_PAGE.items():
        text = text.replace(color, there)
    return text[text.index("<svg") :]


def error_bars(found: Sequence[Estimate]) -> list[list[float]]:
    """How far intervals reach below and above their values; nothing where there is no interval."""
    low = [max(0.0, estimate.value - estimate.low) for estimate in found]
    high = [max(0.0, estimate.high - estimate.value) for estimate in found]
    return [[0.0 if math.isnan(reach) else reach for reach in side] for side in (low, high)]
