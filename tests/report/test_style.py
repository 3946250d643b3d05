"""Figures: error bars by hand, and an SVG in the page's colours."""

import matplotlib as mpl
import numpy as np

from expgen.report.statistics import Estimate
from expgen.report.style import INK, STYLE, error_bars, figure_files, panel, svg_for_page


def test_error_bars_reach_to_the_ends_of_intervals_and_nowhere_without_one() -> None:
    found = [Estimate(5, 4, 7), Estimate(3, np.nan, np.nan), Estimate(2, 2.5, 3)]
    np.testing.assert_array_equal(error_bars(found), [[1, 0, 0], [2, 0, 1]])
    assert error_bars([]).shape == (2, 0)


def test_a_figure_is_drawn_in_our_style_and_leaves_the_callers_settings_alone() -> None:
    before = {name: mpl.rcParams[name] for name in STYLE}
    with panel("$x$ & <b>", 2.0) as (figure, axes):
        axes.plot([0, 1], [0, 1], label="a line")
    files = figure_files(figure)
    assert {name: mpl.rcParams[name] for name in STYLE} == before and files[".png"].startswith(b"\x89PNG")
    svg = files[".svg"].decode()
    assert "$x$ &amp; &lt;b&gt;" in svg and "a line" in svg and INK in svg  # text stays text, a $ is a $
    assert figure_files(figure)[".svg"] == files[".svg"]
    page = svg_for_page(files[".svg"])
    assert page.startswith("<svg") and INK not in page and "var(--xg-text)" in page and "<metadata>" not in page
