"""Convert a notebook to Markdown for the site."""

import json
from pathlib import Path


def as_markdown(path: Path) -> str:
    """Return the notebook's texts, and its code in fences."""
    cells = json.loads(path.read_text())["cells"]
    texts = [("".join(cell["source"]), cell["cell_type"]) for cell in cells]
    return "\n\n".join(f"```python\n{text}\n```" if kind == "code" else text for text, kind in texts)
