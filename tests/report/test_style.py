"""Error bars, figure style and SVG for the page."""

import matplotlib as mpl
import numpy as np

from expgen.report.statistics import Estimate
from expgen.report.style import INK, STYLE, error_bars, figure_files, inline_svg, panel


def test_error_bars_match_intervals_and_are_zero_without_interval() -> None:
    found = [Estimate(5, 4, 7), Estimate(3, np.nan, np.nan), Estimate(2, 2.5, 3)]
    np.testing.assert_array_equal(error_bars(found), [[1, 0, 0], [2, 0, 1]])
    assert error_bars([]).shape == (2, 0)


def test_figure_uses_our_style_and_restores_rcparams() -> None:
    before = {name: mpl.rcParams[name] for name in STYLE}
    with panel("$x$ & <b>", 2.0) as (figure, axes):
        axes.plot([0, 1], [0, 1], label="a line")
    files = figure_files(figure)
    assert {name: mpl.rcParams[name] for name in STYLE} == before and files[".png"].startswith(b"\x89PNG")
    svg = files[".svg"].decode()
    assert "$x$ &amp; &lt;b&gt;" in svg and "a line" in svg and INK in svg  # as text, not paths
    assert figure_files(figure)[".svg"] == files[".svg"]
    page = inline_svg(files[".svg"])
    assert page.startswith("<svg") and INK not in page and "var(--xg-text)" in page and "<metadata>" not in page
