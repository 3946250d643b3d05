"""The tutorial's notebook, from its first cell to its last, at the smallest scale; and the commands that it names."""

import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_every_cell_of_the_tutorial_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = json.loads((DOCS / "tutorial.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 8 and 'PRESET = "laptop"' in code[0]
    assert all(cell.get("outputs", []) == [] for cell in cells), "commit the notebook without outputs"
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    exec(code[0].replace('"laptop"', '"smoke"'), namespace)
    for cell in code[1:]:
        exec(cell.replace("episodes=500", "episodes=20"), namespace)
    said = capsys.readouterr().out
    for name in ("random actions", "one PPO policy", "the explorer", "ExpGen", "random explorer", "leader alone"):
        assert f"{name:<16} unseen" in said, name
    pages = sorted(path.name for path in (tmp_path / "runs" / "tutorial").glob("*.html"))
    assert pages == ["ExpGen.html", "one-PPO-policy.html"]
