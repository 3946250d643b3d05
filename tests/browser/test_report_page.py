"""The report in a browser: sorting, links from numbers to score rows, no network requests."""

import base64
import dataclasses

import pytest

from expgen.evaluation.scores import Score
from expgen.report.entry import Entry, number_entries
from expgen.report.score_table import ScoreTable
from expgen.report.write import write_report

FIRST = Score(
    "ppo", "maze", "procgen:maze", 0, "test", "all", 25_000_000, 500, 5.5, 4.9, 0.55, 5.2, 5.8, "member0", "abc"
)
EVIL = "<img src=x onerror=evil=1> <script>evil=1</script>"
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    rows = [
        dataclasses.replace(FIRST, algorithm=algorithm, game=game, seed=seed, split=split, mean_return=mean + seed / 10)
        for algorithm, game, mean in (("ppo", "maze", 5.5), ("expgen", "maze", 8.1), ("ppo", "heist", 2.0),
                                      ("expgen", "heist", 7.0), ("ppo", "bigfish", 11.0), ("expgen", "bigfish", 9.5))
        for seed in range(3)
        for split in ("train", "test")
    ]  # fmt: skip
    rows.append(dataclasses.replace(FIRST, agent=EVIL, settings=EVIL, levels=",".join(map(str, range(1000, 1100)))))
    (folder / "episode.gif").write_bytes(GIF)
    (folder / "inspector.html").write_text("<!doctype html><title>i</title><p id='x'>inside</p>")
    table = ScoreTable(
        number_entries([Entry(row, "scores.csv", n + 2) for n, row in enumerate(rows)], []), resamples=50
    )
    return write_report(table, folder / "out", episodes=[folder / "episode.gif", folder / "inspector.html"])


def column(page, table, number):
    return page.texts(f"#{table} tbody td:nth-child({number})")


def test_report_table_sorts_by_number_and_by_text(page, report):
    page.open(report)
    assert column(page, "table-table-1", 1)[:2] == ["bigfish", "bigfish"]  # the paper's order
    page.click("#table-table-1 th:nth-child(3) button")
    up = [float(text) for text in column(page, "table-table-1", 3)]
    assert up == sorted(up) and len(up) == 6
    page.click("#table-table-1 th:nth-child(3) button")
    down = [float(text) for text in column(page, "table-table-1", 3)]
    assert down == up[::-1]
    assert page.run("document.querySelector('#table-table-1 th:nth-child(3)').ariaSort") == "descending"
    page.click("#table-table-1 th:nth-child(1) button")
    games = column(page, "table-table-1", 1)
    assert games == sorted(games)


def test_report_table_sorts_by_keyboard(page, report):
    page.open(report)
    page.run("document.querySelector('#table-table-1 th:nth-child(3) button').focus()")
    page.press("Enter")
    up = [float(text) for text in column(page, "table-table-1", 3)]
    assert up == sorted(up)


def test_report_number_click_marks_its_score_rows(page, report):
    page.open(report)
    page.click("#table-table-1 tbody tr:first-child td:nth-child(3) a")
    marked = page.texts("#table-rows tr.marked td[data-label=game]")
    assert marked == ["bigfish"] * 3
    assert page.run("document.querySelector('tr.marked').getBoundingClientRect().top < innerHeight")


def test_report_filter_hides_score_rows(page, report):
    page.open(report)
    page.click("#all-rows > summary")
    page.run("document.getElementById('filter').focus()")
    for key in "heist":
        page.press(key)
    shown = page.run("[...document.querySelectorAll('#table-rows tbody tr')].filter(row => !row.hidden).length")
    assert shown == 12


def test_report_embeds_figures_and_media(page, report, tmp_path):
    page.open(report)
    page.wait_for("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert page.run("document.images.length") == 1 and page.run("document.images[0].alt") == "episode"
    words_and_texts = "f => [f.ariaLabel.length, f.querySelectorAll('text').length]"
    figures = page.run(f"[...document.querySelectorAll('.figures figure')].map({words_and_texts})")
    assert len(figures) >= 8 and min(map(min, figures)) > 3  # alternative text, and text inside each figure
    page.run("document.querySelector('iframe').scrollIntoView()")
    assert "inside" in page.run("document.querySelector('iframe').srcdoc")
    report.rename(tmp_path / "alone.html")  # without the other files of the report
    page.open(tmp_path / "alone.html")
    page.wait_for("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    (tmp_path / "alone.html").rename(report)


def test_report_escapes_hostile_names(page, report):
    page.open(report)
    page.click("#all-rows > summary")
    assert EVIL in page.texts("#table-rows td[data-label=agent]") and page.run("typeof window.evil") == "undefined"
    assert "PPO (<script>evil 1</script>, onerror evil=1>, src x)" in page.texts(
        "#table-everything td[data-label=method]"
    )


def test_report_contents_link_to_every_section(page, report):
    page.open(report)
    links = page.run("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))")
    assert links[0] == "finding" and links[-1] == "rows" and len(links) > 8
    assert page.run("[...document.querySelectorAll('main > section')].map(s => s.id)") == links


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800, 400])
def test_report_has_no_layout_flaws(page, report, width, scheme):
    page.set_color_scheme(scheme)
    page.resize(width, 900)
    page.open(report)
    assert page.flaws() == []
    page.run("document.querySelectorAll('#all-rows, td details').forEach(e => { e.open = true })")
    assert page.flaws() == []
    light = page.run("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
    assert (light > 200) == (scheme == "light")
