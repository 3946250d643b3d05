"""Imports between package folders point one way: each imports only those before it in the list."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import expgen

PACKAGE = Path(expgen.__file__).parent
ROOMS = (  # the first may be used by all
    "errors", "text", "files", "settings", "random", "provenance", "colors", "html", "plugins",
    "envs", "networks", "rollout", "reward", "algorithms", "training", "fast",  # from games to weights
    "agents", "paper", "evaluation", "exploration",  # from weights to scores
    "storage", "runs",
    "report", "diagnosis", "watch", "bench", "cluster", "reproduce",
    "expgen", "cli", "__main__",  # `import expgen`, the command line, and `python -m expgen`
)  # fmt: skip


class Import(NamedTuple):
    """One import of a package folder by another."""

    where: str  # file and line
    room: str
    imported: str


def imports_between_rooms(package: Path) -> Iterator[Import]:
    """Return every import between folders of `package`, inside functions too."""
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        room = inside.parts[0].removesuffix(".py").replace("__init__", "expgen")
        for node in ast.walk(ast.parse(path.read_text())):
            for module in _modules(node):
                name, *rest = module.split(".")
                imported = rest[0] if rest else name
                if name == "expgen" and imported != room:
                    yield Import(f"expgen/{inside}:{node.lineno}", room, imported)  # type: ignore[attr-defined]


def _modules(node: ast.AST) -> list[str]:
    """Return the modules of an import statement; `from expgen import x` names the folder x if there is one."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide which room is meant"
        rooms = [f"expgen.{alias.name}" for alias in node.names if alias.name in ROOMS]
        return rooms or ["expgen"] if node.module == "expgen" else [node.module or ""]
    return []


def backward(imports: Iterator[Import]) -> list[str]:
    """Return error lines of the imports that do not point to an earlier folder."""
    return [
        f"{each.where}: {each.room} imports {each.imported}, which comes later"
        for each in imports
        if ROOMS.index(each.imported) >= ROOMS.index(each.room)
    ]


def test_every_package_folder_is_in_the_import_order() -> None:
    found = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | {path.stem for path in PACKAGE.glob("*.py")}
    assert found - {"__init__"} == set(ROOMS) - {"expgen"}


def test_imports_between_folders_point_one_way() -> None:
    imports = list(imports_between_rooms(PACKAGE))
    assert len(imports) > 300
    assert backward(iter(imports)) == []


@pytest.mark.parametrize(
    "line",
    [
        "from expgen.fast.accelerate import accelerate",
        "import expgen.fast",
        "from expgen import fast",
        "def later():\n    from expgen.fast.graphs import Graphs",
        "import expgen",
    ],
)
def test_backward_import_is_reported_with_its_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "learner.py").write_text(f"from expgen.envs.make import make_env\n{line}\n")
    (found,) = backward(imports_between_rooms(tmp_path))
    number = 3 if "def" in line else 2
    room = "expgen" if line == "import expgen" else "fast"
    assert found == f"expgen/training/learner.py:{number}: training imports {room}, which comes later"
