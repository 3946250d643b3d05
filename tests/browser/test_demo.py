"""The demo page in a browser: both sides play in step and fit on the first screen."""

from pathlib import Path

import pytest

from expgen.watch.demo import demo_page, demo_results

FIRST = "document.querySelector('.xg-group').querySelectorAll('.xg-line')"
SHOWN = f"[...{FIRST}].map(line => line.getAttribute('aria-valuenow') - 1)"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("demo") / "report.html"
    file.write_text(demo_page("minimaze", list(demo_results("minimaze", 20, num_envs=20))))
    return file


@pytest.mark.parametrize("width", [1400, 400])
def test_demo_plays_both_sides_in_step_above_the_fold(page, demo, width):
    page.resize(width, 800)
    page.open(demo)
    page.wait_for(f"{SHOWN}[0] > 2")
    assert len(set(page.run(SHOWN))) == 1
    for canvas in (0, 1):
        box = f"document.querySelectorAll('.xg-stage canvas')[{canvas}].getBoundingClientRect()"
        assert page.run(f"[{box}.top > 0, {box}.bottom < innerHeight, {box}.width > 150]") == [True] * 3
    assert page.run("scrollY") == 0


def test_demo_url_with_step_pauses_at_that_step(page, demo):
    page.open(demo)
    level = page.texts(".xg-page > h2")[0].removeprefix("Level ").partition(":")[0]
    page.run(f"location.hash = '#level={level}&step=4'")
    page.wait_for(f"{SHOWN}[0] === 3")
    assert page.texts(".xg-play")[0] == "▶ Play"


def test_demo_has_a_lead_of_two_sentences_and_explains_the_explorer(page, demo):
    page.open(demo)
    (lead,) = page.texts(".xg-lead")
    assert lead.count(".") == 2 and "neither was trained" in lead
    assert any(heading.startswith("Why the explorer alone is") for heading in page.texts("h2"))
    assert page.texts(".xg-scores tbody td:first-child")[0] == "random actions"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 800, 400])
def test_demo_has_no_layout_flaws(page, demo, width, scheme):
    page.set_color_scheme(scheme)
    page.resize(width, 900)
    page.open(demo)
    page.wait_for(f"{SHOWN}[0] > 0")
    assert page.flaws() == []
