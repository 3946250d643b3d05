"""Runs at a URL as local folders."""

from pathlib import Path

import pytest

from expgen.errors import InputError
from expgen.storage.mirror import LISTS, Mirror
from expgen.storage.store import Store
from expgen.storage.view import check_not_busy, edit_run, fetch, local_copy, snapshots_below

pytest.importorskip("fsspec")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The URL of a run that no process works on."""
    (tmp_path / "written" / "checkpoints").mkdir(parents=True)
    (tmp_path / "written" / "checkpoints" / "1.safetensors").write_bytes(b"weights")
    (tmp_path / "written" / "scores.csv").write_text("row\n")
    mirror = Mirror(Store(f"file://{tmp_path}/run"), tmp_path / "written")
    mirror.claim()
    mirror.upload(is_open=False)
    return mirror.store.url


def test_edit_run_reuses_an_earlier_download(url: str, tmp_path: Path, monkeypatch) -> None:
    folder = local_copy(url + "/")
    asked: list[str] = []
    read = Store.read
    monkeypatch.setattr(Store, "read", lambda self, name: (asked.append(name), read(self, name))[1])

    def edit(here: Path) -> None:
        assert here == folder
        (here / "scores.csv").write_text("row\nanother\n")

    edit_run(url, edit)
    assert asked and all(name.startswith(LISTS) for name in asked)
    assert fetch(url, tmp_path / "fetched") == 2
    assert (tmp_path / "fetched" / "scores.csv").read_text() == "row\nanother\n"
    assert (local_copy(url) / "scores.csv").read_text() == "row\nanother\n"


def test_edit_run_rejects_a_busy_run(url: str, tmp_path: Path) -> None:
    check_not_busy(url)
    Mirror(Store(url), tmp_path / "other").claim()
    for work in (lambda: check_not_busy(url), lambda: edit_run(url, lambda folder: None)):
        with pytest.raises(InputError, match="is in use"):
            work()


def test_local_copy_returns_folders_and_downloads_urls(url: str, tmp_path: Path) -> None:
    assert local_copy(tmp_path) == tmp_path
    sketch = local_copy(url, without_weights=True)
    assert sketch.name == "run" and sketch != local_copy(url)
    assert (sketch / "checkpoints" / "1.safetensors").read_bytes() == b""
    assert (sketch / "scores.csv").read_text() == "row\n"


def test_local_copy_is_reused_up_to_max_age(url: str) -> None:
    local_copy(url)
    edit_run(url, lambda folder: None)
    Path(url.removeprefix("file://"), LISTS).rename(Path(url.removeprefix("file://"), "gone"))
    assert (local_copy(url, max_age=60.0) / "scores.csv").exists()
    assert not (local_copy(url) / "scores.csv").exists()


def test_snapshots_below_a_url_are_found_at_any_depth(url: str, tmp_path: Path) -> None:
    assert snapshots_below(url) == [""] and snapshots_below(f"file://{tmp_path}") == ["run"]
