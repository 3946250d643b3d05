"""The documentation in a browser, opened from disk: every page, several widths, light and dark."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCHEMES = {"light": "default", "dark": "slate"}  # names used by the theme
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as built by `make docs`; a warning, such as a broken link, fails the build."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("needs MkDocs (make docs)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def pages_of(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if path.name != "404.html")


@pytest.mark.parametrize("width", [1400, 800, 400])
def test_docs_have_no_layout_flaws(page, site, width):
    """The page follows the colour scheme of the system without a reload."""
    page.resize(width, 900)
    flaws = {}
    for file in pages_of(site):
        page.open(file)
        for scheme, name in SCHEMES.items():
            page.set_color_scheme(scheme)
            page.wait_for(f"document.body.dataset.mdColorScheme === '{name}'")
            if found := page.flaws():
                flaws[f"{file.relative_to(site)}, {scheme}"] = found
    assert flaws == {}


def test_docs_search_works_from_disk(page, site):
    page.open(site / "index.html")
    page.run("document.querySelector('[data-md-component=search-query]').focus()")
    for letter in "quorum":
        page.press(letter)
    page.wait_for("document.querySelectorAll('.md-search-result__item').length > 2")
    assert any("Choosing the quorum" in text for text in page.texts(".md-search-result__item"))


def test_docs_reference_lists_every_verb_algorithm_and_public_name(page, site):
    import expgen
    from expgen.algorithms.recipes import RECIPES
    from expgen.cli.main import VERBS

    for name, expected in (
        ("commands", [f"expgen {verb}" for verb in VERBS]),
        ("settings", [f"--algo {algo}" for algo in RECIPES]),
        ("python", [f"expgen.{name}" for name in expgen.__all__]),
    ):
        page.open(site / "reference" / f"{name}.html")
        headings = [text.rstrip("¶").strip() for text in page.texts("h2")]
        assert set(expected) <= set(headings)
