"""Pages: values are escaped, whatever they are."""

import pytest
from jinja2 import UndefinedError

from expgen.html import _templates, _with_code, render


def test_values_are_escaped_and_what_stands_in_backticks_is_code() -> None:
    assert _with_code("`a<b` & c") == "<code>a&lt;b</code> &amp; c"
    page = _templates().from_string("{{ text }} {{ text | code }} {{ rows | tojson }}")
    text = page.render(text="<script>`x`", rows=[1.5, "</script>"])
    assert "<script>" not in text and "&lt;script&gt;<code>x</code>" in text and '[1.5,"\\u003c/script\\u003e"]' in text


def test_a_value_that_a_template_names_and_nobody_gave_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        _templates().from_string("{{ nothing }}").render()


def test_numbers_that_json_does_not_have_do_not_reach_a_page() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        _templates().from_string("{{ rows | tojson }}").render(rows=[float("nan")])


def test_a_template_that_does_not_exist_is_no_empty_page() -> None:
    with pytest.raises(Exception, match="no-such"):
        render("shared/no-such.html")
