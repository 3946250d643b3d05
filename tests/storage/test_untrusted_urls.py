"""Untrusted storage: nothing is written outside the folder of fetch."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest

from expgen.storage.mirror import object_name

PLANTED = b"planted"
DIGEST = hashlib.sha256(PLANTED).hexdigest()


@pytest.fixture
def plant(bucket: str) -> Callable[..., None]:
    """Write a snapshot of one file below the URL with unchecked keys."""
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    root = bucket.removeprefix("s3://")

    def write(path: str, name: str, stored_as: str | None = None, lists: str = "lists") -> None:
        snapshot = {"is_open": False, "written": 1.0, "files": {name: DIGEST}}
        files.pipe_file(f"{root}/{path}{lists}/000001-000000000-abc.json", json.dumps(snapshot).encode())
        files.pipe_file(f"{root}/{path}{stored_as or object_name('a.csv', DIGEST)}", PLANTED)

    return write


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "path",
    ["../", "runs/../../", "runs/./", "runs//", "\\..\\"],
    ids=["parent", "grandparent", "itself", "empty", "backslash"],
)
def test_fetch_rejects_keys_outside_its_folder(path: str, plant, bucket: str, refused, tmp_path: Path) -> None:
    plant(path, "a.csv")
    line = refused("fetch", bucket, tmp_path / "deep" / "here")
    assert "the file name" in line and "is not safe; accepted: a relative path" in line
    assert not everything(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["../a.csv", "runs/../../a.csv", "ABSOLUTE", "a\\b", "a\0b"],
    ids=["parent", "grandparent", "absolute", "backslash", "nul"],
)
def test_fetch_rejects_lists_with_files_outside_its_folder(
    name: str, plant, bucket: str, refused, tmp_path: Path
) -> None:
    target = tmp_path / "deep" / "here"
    plant("", str(tmp_path / "a.csv") if name == "ABSOLUTE" else name)
    assert "is not safe" in refused("fetch", bucket, target)
    assert not everything(tmp_path)


def test_fetch_rejects_links_and_pipes_at_the_target(plant, bucket: str, refused, tmp_path: Path) -> None:
    plant("", "a.csv")
    here, outside = tmp_path / "here", tmp_path / "outside"
    here.mkdir()
    (here / "a.csv").symlink_to(outside)
    assert f"{here / 'a.csv'} is a link to" in refused("fetch", bucket, here)
    assert not outside.exists()
    (here / "a.csv").unlink()
    os.mkfifo(here / "a.csv")
    assert f"{here / 'a.csv'} is a pipe" in refused("fetch", bucket, here)


def test_status_and_evaluate_reject_unsafe_keys(plant, bucket: str, refused) -> None:
    plant("../", "config.json")
    assert "is not safe" in refused("status", bucket)
    plant("", "../config.json")
    for words in (["evaluate", bucket], ["train", "--run", bucket, "--resume"], ["play", bucket, "--level", "1"]):
        assert "is not safe" in refused(*words)


def test_fetch_accepts_a_valid_snapshot(plant: Any, bucket: str, command: Callable[..., Any], tmp_path: Path) -> None:
    """The snapshots above are rejected only for their names."""
    plant("runs/maze/", "a.csv")
    assert command("fetch", bucket, tmp_path).status == 0
    assert (tmp_path / "runs" / "maze" / "a.csv").read_bytes() == PLANTED
