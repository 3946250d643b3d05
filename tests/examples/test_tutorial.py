"""The tutorial notebook runs from its first cell to its last with the smoke preset."""

import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_all_tutorial_cells_run(
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
    output = capsys.readouterr().out
    for name in ("random actions", "one PPO policy", "the explorer", "ExpGen", "random explorer", "leader alone"):
        assert f"{name:<16} unseen" in output, name
    pages = sorted(path.name for path in (tmp_path / "runs" / "tutorial").glob("*.html"))
    assert pages == ["ExpGen.html", "one-PPO-policy.html"]
