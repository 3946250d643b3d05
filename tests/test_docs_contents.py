"""Docs pages are in the navigation and the contents; links and file names in docs exist."""

import re
from pathlib import Path

import pytest

from expgen.evaluation.scores import COLUMNS
from expgen.exploration.rows import MEASURES
from expgen.training.metrics import LEADING

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if path.name != "README.md")


@pytest.mark.parametrize("page", PAGES)
def test_docs_page_is_in_the_navigation_and_the_contents(page: str) -> None:
    in_navigation = re.findall(rf": {re.escape(page)}$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(in_navigation) == 1, f"mkdocs.yml names {page} {len(in_navigation)} times under nav; accepted: once"
    assert f"]({page})" in (DOCS / "README.md").read_text(), f"docs/README.md does not link {page}"


def test_readme_links_point_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)[)#]", (ROOT / "README.md").read_text())
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).is_file()] == []


@pytest.mark.parametrize("page", ["glossary.md", "how-expgen-works.md", "architecture.md", "speed.md", "agents.md"])
def test_python_files_named_in_docs_exist(page: str) -> None:
    names = re.findall(r"(?:expgen/)?((?:\w+/)+\w+\.py)", (DOCS / page).read_text())
    assert names
    missing = {name for name in names if not any((folder / name).is_file() for folder in (ROOT, ROOT / "expgen"))}
    assert missing == set()


@pytest.mark.parametrize("column", (*LEADING, *COLUMNS, *MEASURES))
def test_glossary_lists_every_column(column: str) -> None:
    assert f"`{column}`" in (DOCS / "glossary.md").read_text(), f"docs/glossary.md has no line for {column}"
