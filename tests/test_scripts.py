"""Scripts, benchmarks and examples import existing names."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    *(path for path in (ROOT / "scripts").iterdir() if path.is_file() and "python" in path.read_text().splitlines()[0]),
    *(ROOT / "benchmarks").glob("*.py"),
    *(ROOT / "examples").glob("*.py"),
]


def test_scripts_are_found() -> None:
    assert {"demo", "bundle", "measure"} <= {path.name for path in FILES} and len(FILES) > 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_names_imported_by_scripts_exist(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "expgen":
            module = importlib.import_module(str(node.module))
            missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
            for name in missing:
                importlib.import_module(f"{node.module}.{name}")


def test_every_pinned_dependency_has_hashes() -> None:
    """If this fails: scripts/hash-pins INDEX > hashes.txt."""
    pins = [line.strip() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    hashed = [line.partition(" --hash=sha256:")[0] for line in (ROOT / "hashes.txt").read_text().splitlines()]
    assert [pin for pin in pins if not pin.startswith(("torch==", "triton=="))] == hashed[1:]
