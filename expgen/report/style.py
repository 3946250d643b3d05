"""Style of figures: panels as wide as a phone screen, so that their text is never smaller than that of the page."""

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context, rc_params_from_file
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from expgen.report.statistics import Estimate

WIDTH = 3.9  # of a panel, in inches: 374 px
STYLE = rc_params_from_file(Path(__file__).with_name("assets") / "figures.mplstyle", use_default_template=False)
INK = STYLE["text.color"]
_PAGE_COLORS = {INK: "var(--xg-text)", STYLE["grid.color"]: "var(--xg-line)", "#ffffff": "none"}
SPLIT_COLORS = {"train": "#EE7733", "test": "#0077BB"}  # as in the paper
SEQUENCE = ("#332288", "#117733", "#44AA99", "#DDCC77", "#CC6677", "#882255")  # for variants of one method
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
DASHES = ("-", "--", "-.", ":")
PAPER: dict[str, Any] = {"marker": "D", "markerfacecolor": "white", "color": INK, "linestyle": "none"}
figure_style = partial(rc_context, STYLE)  # a context for drawing and saving that restores rcParams


@contextlib.contextmanager
def panel(title: str, height: float) -> Iterator[tuple[Figure, Axes]]:
    """Yield an empty figure of one panel, `height` inches high, to draw on; then add title and legend."""
    with figure_style():
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_subplot()
        yield figure, axes
        axes.set_title(title)
        handles, labels = axes.get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=2, columnspacing=1, handlelength=1.8)


def figure_files(figure: Figure) -> dict[str, bytes]:
    """Return the figure as `.svg` and `.png` files."""
    svg, png = io.BytesIO(), io.BytesIO()
    with figure_style():
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.set_layout_engine("none")  # keep the layout of the first save
        figure.savefig(png, format="png", dpi=160)
    return {".svg": svg.getvalue(), ".png": png.getvalue()}


def inline_svg(svg: bytes) -> str:
    """Return an SVG file for embedding in the page: without prologue and background, in the page's colours."""
    text = re.sub(r"<metadata>.*?</metadata>", "", svg.decode(), flags=re.DOTALL)
    for color, variable in _PAGE_COLORS.items():
        text = text.replace(color, variable)
    return text[text.index("<svg") :]


def error_bars(found: Sequence[Estimate]) -> ndarray:
    """Return the lengths of error bars below and above each value, `[2, n]`; 0 for an estimate without interval."""
    value, low, high = np.array(found).reshape(-1, 3).T
    return np.nan_to_num(np.maximum(0, [value - low, high - value]))
