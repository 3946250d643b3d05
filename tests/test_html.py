"""HTML templates escape their values."""

import pytest
from jinja2 import UndefinedError

from expgen.html import _templates, _with_code, render


def test_render_escapes_values_and_turns_backticks_into_code() -> None:
    assert _with_code("`a<b` & c") == "<code>a&lt;b</code> &amp; c"
    page = _templates().from_string("{{ text }} {{ text | code }} {{ rows | tojson }}")
    text = page.render(text="<script>`x`", rows=[1.5, "</script>"])
    assert "<script>" not in text and "&lt;script&gt;<code>x</code>" in text and '[1.5,"\\u003c/script\\u003e"]' in text


def test_render_raises_on_a_missing_value() -> None:
    with pytest.raises(UndefinedError):
        _templates().from_string("{{ nothing }}").render()


def test_render_rejects_nan_in_json() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        _templates().from_string("{{ rows | tojson }}").render(rows=[float("nan")])


def test_render_raises_on_an_unknown_template() -> None:
    with pytest.raises(Exception, match="no-such"):
        render("shared/no-such.html")
