"""Locations: folders and URLs alike."""

from pathlib import Path

import pytest

from expgen.storage.location import Location, absolute, is_url, join


@pytest.mark.parametrize(
    ("location", "expected"),
    [("s3://bucket/run", True), ("runs/maze", False), (Path("s3://bucket"), False), (None, False)],
)
def test_a_text_with_a_scheme_is_a_url_and_a_path_never_is(location: Location | None, expected: bool) -> None:
    assert is_url(location) is expected


def test_locations_are_joined_and_made_absolute_each_in_its_way(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert join("s3://bucket/run/", "scores", "a") == "s3://bucket/run/scores/a"
    assert join("runs", "scores", "a") == Path("runs/scores/a")
    assert absolute("s3://bucket/run/") == "s3://bucket/run"
    assert absolute("runs/../maze") == tmp_path.resolve() / "maze"
