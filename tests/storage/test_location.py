"""Locations: folders and URLs."""

from pathlib import Path

import pytest

from expgen.storage.location import Location, absolute, is_url, join


@pytest.mark.parametrize(
    ("location", "expected"),
    [("s3://bucket/run", True), ("runs/maze", False), (Path("s3://bucket"), False), (None, False)],
)
def test_is_url_needs_a_str_with_a_scheme(location: Location | None, expected: bool) -> None:
    assert is_url(location) is expected


def test_join_and_absolute_work_for_paths_and_urls(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert join("s3://bucket/run/", "scores", "a") == "s3://bucket/run/scores/a"
    assert join("runs", "scores", "a") == Path("runs/scores/a")
    assert absolute("s3://bucket/run/") == "s3://bucket/run"
    assert absolute("runs/../maze") == tmp_path.resolve() / "maze"
