"""Names of the package and links in docs/parts.md exist."""

import re
from pathlib import Path

import expgen

PAGE = Path(__file__).parents[2] / "docs" / "parts.md"


def test_names_and_links_of_parts_page_exist() -> None:
    text = PAGE.read_text()
    names = set(re.findall(r"expgen\.(\w+)\(", text)) | set(re.findall(r"from expgen import (.*)", text)[0].split(", "))
    assert {"KnnStepReward", "consensus_agent", "evaluate"} <= names and all(hasattr(expgen, name) for name in names)
    files = re.findall(r"\]\(([\w./-]+)\)", text)
    assert len(files) >= 4 and all((PAGE.parent / file).exists() for file in files)
