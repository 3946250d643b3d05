"""How figures look: panels as wide as a phone, so that text is never smaller than a page's own."""

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

WIDTH = 3.9  # inches of a panel: 374 px
STYLE = rc_params_from_file(Path(__file__).with_name("assets") / "figures.mplstyle", use_default_template=False)
INK = STYLE["text.color"]
_ON_PAGE = {INK: "var(--xg-text)", STYLE["grid.color"]: "var(--xg-line)", "#ffffff": "none"}
SPLIT_COLORS = {"train": "#EE7733", "test": "#0077BB"}  # the paper's: train orange, test blue
SEQUENCE = ("#332288", "#117733", "#44AA99", "#DDCC77", "#CC6677", "#882255")  # variants of one method, in order
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
DASHES = ("-", "--", "-.", ":")
PAPER: dict[str, Any] = {"marker": "D", "markerfacecolor": "white", "color": INK, "linestyle": "none"}
figure_style = partial(rc_context, STYLE)  # drawing and saving happen within; the caller's settings stay as they were


@contextlib.contextmanager
def panel(title: str, height: float) -> Iterator[tuple[Figure, Axes]]:
    """An empty figure of one panel, `height` inches high, to draw on; its legend, if any, is put below it."""
    with figure_style():
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_subplot()
        yield figure, axes
        axes.set_title(title)
        handles, labels = axes.get_legend_handles_labels()
        if handles:
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


def error_bars(found: Sequence[Estimate]) -> ndarray:
    """How far intervals reach below and above their values, `[2, n]`; nothing where there is no interval."""
    value, low, high = np.array(found).reshape(-1, 3).T
    return np.nan_to_num(np.maximum(0, [value - low, high - value]))
