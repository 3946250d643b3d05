"""expgen fetch: download and update of a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec")

from expgen.storage.mirror import Mirror
from expgen.storage.store import Store


@pytest.fixture
def pushed(tmp_path: Path) -> Callable[[str, dict[str, str]], str]:
    """Upload files to a URL; return the URL."""

    def push(name: str, files: dict[str, str]) -> str:
        url = f"file://{tmp_path}/url/{name}".rstrip("/")
        mirror = Mirror(Store(url), tmp_path / "writer" / name)
        for file, text in files.items():
            (mirror.folder / file).parent.mkdir(parents=True, exist_ok=True)
            (mirror.folder / file).write_text(text)
        mirror.claim()
        mirror.upload(is_open=False)
        return url

    return push


def test_fetch_downloads_and_updates_a_run(pushed: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "notes.txt").write_text("mine")
    url = pushed("", {"config.json": "1", "checkpoints/member0/1.safetensors": "one"})
    assert command("fetch", url, here) == (0, f"done: 2 files in {here}\n", "")
    assert (here / "checkpoints" / "member0" / "1.safetensors").read_text() == "one"
    pushed("", {"config.json": "2"})
    assert command("fetch", url, here).status == 0
    assert (here / "config.json").read_text() == "2" and (here / "notes.txt").read_text() == "mine"


def test_fetch_downloads_a_reproduction_with_its_runs(pushed: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    url = pushed("", {"scores.csv": "rows\n"})
    pushed("runs/maze-ppo", {"config.json": "ppo"})
    pushed("scores/maze-ppo", {"made.json": "made"})
    assert command("fetch", url, tmp_path / "here").out == f"done: 3 files in {tmp_path / 'here'}\n"
    assert (tmp_path / "here" / "runs" / "maze-ppo" / "config.json").read_text() == "ppo"
    assert (tmp_path / "here" / "scores" / "maze-ppo" / "made.json").read_text() == "made"


def test_fetch_rejects_folders_and_empty_urls(refused: Callable[..., str], tmp_path: Path) -> None:
    line = refused("fetch", tmp_path, tmp_path / "here")
    assert f"URL is {str(tmp_path)!r}; accepted: a URL as s3://BUCKET/RUN" in line
    url = f"file://{tmp_path}/nothing"
    assert f"{url} has no files that expgen wrote; accepted: a --run or --out" in refused("fetch", url, tmp_path / "x")
