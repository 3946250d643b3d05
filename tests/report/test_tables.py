"""Tables as Markdown, LaTeX, CSV and HTML."""

import pytest

from expgen.html import render
from expgen.report.score_sections import comparison_cells, score_section
from expgen.report.sections import build_sections
from expgen.report.tables import (
    Table,
    TableCell,
    number_cell,
    percent_cell,
    spreadsheet_text,
    to_csv,
    to_latex,
    to_markdown,
)
from tests.report.score_rows import make_row, make_table, paper_like_rows


@pytest.fixture
def table():
    made = Table("t", "A & B", ("name", "score"))
    made.add("x_1 | y", TableCell("8.3", 8.3, bold=True))
    made.add("<b>", number_cell(-0.25, 2, sign=True))
    return made


def test_table_renders_as_markdown(table):
    lines = to_markdown(table).splitlines()
    assert lines[0] == "A &amp; B"
    assert lines[2:] == ["| name | score |", "| --- | --- |", "| x_1 \\| y | **8.3** |", "| &lt;b&gt; | −0.25 |"]


def test_markdown_latex_and_csv_escape_untrusted_names():
    made = Table("t", "names", ("name",))
    made.add("a\n| b |\x1b[31m[c](javascript:d) `e`")
    row = to_markdown(made).splitlines()[-1]
    assert row == "| a\\\\n\\| b \\|\\\\x1b\\[31m\\[c\\](javascript:d) \\`e\\` |"
    assert "\x1b" not in to_latex(made) + to_csv(made) and len(to_csv(made).splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=cmd()", "'=cmd()"), ("@sum", "'@sum"), ("+a", "'+a"), ("-x 1", "'-x 1"), ("−0.25", "-0.25"),
        ("+1.5", "+1.5"), ("−3.1 %", "-3.1 %"), ("1,000", "1,000"), ("maze", "maze"), ("–", "–"),
    ],
)  # fmt: skip
def test_csv_escapes_formulas(text, written):
    assert spreadsheet_text(text) == written


def test_html_table_collapses_long_text():
    made = Table("t", "", ("a", "b"))
    made.add(TableCell("scores.csv line 2", more="expgen train"), "x" * 454)
    text = render("report/table.html", table=made)
    assert "<details><summary>scores.csv line 2</summary><div>expgen train</div></details>" in text
    assert f"<summary>{'x' * 50}…</summary><div>{'x' * 454}</div>" in text and 'class="broken"' in text
    assert "scores.csv line 2: expgen train" in to_csv(made)


def test_number_and_percent_cells_show_missing_values_as_dashes():
    assert [cell(value).text for cell in (number_cell, percent_cell) for value in (None, float("nan"))] == ["–"] * 4
    assert (percent_cell(-0.031).text, percent_cell(-0.031).sort) == ("−3.1 %", -0.031)


def test_table_renders_as_latex(table):
    text = to_latex(table)
    assert r"x\_1 | y & \textbf{8.3} \\" in text and r"\caption{A \& B}" in text and "$-$0.25" in text


def test_table_renders_as_html(table):
    text = render("report/table.html", table=table)
    assert "&lt;b&gt;" in text and "<strong>8.3</strong>" in text and 'data-sort="8.3"' in text


def test_html_number_columns_align_dashes_and_headers(table):
    table.add("z", "–")
    text = render("report/table.html", table=table)
    assert text.count('<th scope="col" class="number">') == 1 and text.count('data-label="score" class="number"') == 3


def test_table_rejects_row_of_wrong_length():
    with pytest.raises(ValueError, match="1 cells"):
        Table("t", "", ("a", "b")).add("x")


def test_comparison_cells_have_difference_and_overlap():
    rows = [make_row("expgen", seed=seed, mean=mean, agent="expgen") for seed, mean in enumerate((8.0, 8.2, 8.4, 8.2))]
    section = score_section(make_table(rows, resamples=500), "table-1", "test")
    cells = dict(zip(section.tables[1].columns, section.tables[1].rows[0], strict=True))
    assert [cells[name].text for name in ("game", "method", "mean", "runs", "steps")] == [
        "maze", "ExpGen-PPO", "8.20", "4", "25M"]  # fmt: skip
    assert cells["paper"].text == "8.3 ± 0.2" and cells["difference"].text == "−0.10"
    assert cells["overlap"].text == "yes"  # the paper's mean is 8.16 to 8.44
    assert len(cells["mean"].entries) == 4


def test_comparison_cells_without_overlap_or_paper():
    rows = [make_row(mean=4.0, ci_low=3.5, ci_high=4.4)]  # the paper's PPO: 5.6 ± 0.1
    table = make_table(rows)
    section = score_section(table, "table-1", "test")
    assert section.tables[1].rows[0][-1].text == "no"
    method = table.methods()[0]
    assert [cell.text for cell in comparison_cells(table.cell(method, "maze", "test"), None)[-3:]] == ["–"] * 3


def test_latex_of_all_tables_is_ascii():
    table = make_table(paper_like_rows(), resamples=20)
    made = [table for section in build_sections(table) for table in section.tables]
    assert all(to_latex(table).isascii() for table in made) and len(made) > 15
