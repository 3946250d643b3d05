"""Snapshots at a URL: whole or not at all, wherever who writes or reads them dies; one writer."""

import json
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from expgen.errors import InputError, TakenOver
from expgen.storage.listing import FILES, LISTS
from expgen.storage.mirror import Mirror
from expgen.storage.store import Store

pytest.importorskip("fsspec")


class Death(BaseException):
    """Nobody catches it, as nobody survives SIGKILL."""


class Mortal(LocalFileSystem):
    """A disk that changes nothing from the n-th change on, of which it leaves a half where it was a write."""

    def __init__(self, changes: int) -> None:
        super().__init__(skip_instance_cache=True)
        self.changes = changes

    def _die(self) -> None:
        self.changes -= 1
        if self.changes < 0:
            raise Death

    def pipe_file(self, path: str, value: bytes, **more: Any) -> None:
        try:
            self._die()
        except Death:
            super().pipe_file(path, value[: len(value) // 2])
            raise
        super().pipe_file(path, value)

    def rm_file(self, path: str) -> None:
        self._die()
        super().rm_file(path)


def mirror_at(url: Path, folder: Path, **keywords: Any) -> Mirror:
    folder.mkdir(exist_ok=True)
    url.mkdir(exist_ok=True)
    return Mirror(Store(f"file://{url}", patience=60.0), folder, **keywords)


def fill(folder: Path, text: str) -> dict[str, str]:
    """Three files of which every one says `text`, and a checkpoint named by it."""
    for old in folder.glob("checkpoints/a/*"):
        old.unlink()
    files = {"metrics.csv": f"{text}\n", "sitting.json": text, f"checkpoints/a/{text}.safetensors": text}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return files


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def read_from(url: Path, folder: Path) -> dict[str, str]:
    mirror_at(url, folder).pull()
    return contents(folder)


def test_a_snapshot_is_brought_there_and_back_with_its_times(tmp_path: Path) -> None:
    mirror = mirror_at(tmp_path / "url", tmp_path / "here", leave_out=("runs",))
    mirror.claim()
    first = fill(tmp_path / "here", "1")
    (tmp_path / "here" / "runs").mkdir()
    (tmp_path / "here" / "runs" / "not-ours").touch()
    (tmp_path / "here" / "half.json.12345678.part").touch()
    mirror.push()
    second = fill(tmp_path / "here", "2")
    mirror.push()
    assert first != second == read_from(tmp_path / "url", tmp_path / "there")
    times = [(tmp_path / side / "metrics.csv").stat().st_mtime for side in ("here", "there")]
    assert times[0] == times[1]
    assert len(list((tmp_path / "url" / FILES).rglob("*.safetensors"))) == 1  # as many as here
    assert len(list((tmp_path / "url" / LISTS).iterdir())) == 1


def test_who_dies_anywhere_in_a_push_leaves_the_snapshot_before_or_the_one_after(tmp_path: Path) -> None:
    seen = []
    for changes in range(20):
        url, here = tmp_path / f"url{changes}", tmp_path / f"here{changes}"
        mirror = mirror_at(url, here)
        mirror.claim()
        before = fill(here, "before")
        mirror.push()
        after = fill(here, "after")
        mirror.store.files = Mortal(changes)
        try:
            mirror.push()
            has_died = False
        except Death:
            has_died = True
        found = read_from(url, tmp_path / f"there{changes}")
        assert found in (before, after)
        seen.append((has_died, found == after))
        heir = mirror_at(url, tmp_path / f"heir{changes}")
        heir.claim()
        heir.pull()
        assert contents(heir.folder) == found
        heir.push(is_open=False)  # and what the dead one left behind is gone
        assert len(list((url / FILES).rglob("*.*"))) == len(found) and len(list((url / LISTS).iterdir())) == 1
        if not has_died:
            break
    assert {(True, False), (True, True), (False, True)} == set(seen)


def test_who_dies_while_it_claims_stands_in_nobody_s_way(tmp_path: Path) -> None:
    first = mirror_at(tmp_path / "url", tmp_path / "first")
    first.claim()
    expected = fill(first.folder, "1")
    first.push()
    for name in "abcdefgh":
        mortal = mirror_at(tmp_path / "url", tmp_path / name)
        mortal.store.files = Mortal(0)
        with pytest.raises(Death):
            mortal.claim()
        heir = mirror_at(tmp_path / "url", tmp_path / f"heir {name}")
        heir.claim()
        heir.pull()
        heir.push()
        assert contents(heir.folder) == expected


def test_a_list_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    writer, reader = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    expected = fill(writer.folder, "1")
    lists = reader._lists()
    writer.push()
    looks = iter([lists, reader._lists()])
    reader._lists = lambda: next(looks)  # type: ignore[method-assign] # the first one is of before the push
    reader.pull()
    assert contents(reader.folder) == expected


def test_who_comes_later_takes_over(tmp_path: Path) -> None:
    early, late = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("early", "late"))
    early.claim()
    fill(early.folder, "early")
    early.push()
    late.claim()
    late.pull()
    fill(early.folder, "too late")
    with pytest.raises(TakenOver):
        early.push()
    fill(late.folder, "late")
    late.push()
    assert read_from(tmp_path / "url", tmp_path / "there")["sitting.json"] == "late"


def test_of_two_that_claim_at_once_one_is_left(tmp_path: Path) -> None:
    one, other = sorted(
        (mirror_at(tmp_path / "url", tmp_path / name) for name in ("a", "b")), key=lambda mirror: mirror.writer
    )
    other.claim()
    looks = chain([list], repeat(one._lists))  # the first is of before the other one wrote
    one._lists = lambda: next(looks)()  # type: ignore[method-assign]
    with pytest.raises(TakenOver):
        one.claim()
    other.push(is_open=False)


def test_a_snapshot_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    writer, reader = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    fill(writer.folder, "1")
    writer.push()
    read = reader.store.read

    def read_late(name: str) -> bytes:
        if name.startswith(LISTS):
            content = read(name)
            if b"/1." in content:
                after.update(fill(writer.folder, "2"))
                writer.push()
            return content
        return read(name)

    after: dict[str, str] = {}
    reader.store.read = read_late  # type: ignore[method-assign]
    reader.pull()
    assert contents(reader.folder) == after


def test_a_sketch_has_names_of_checkpoints_and_no_weights(tmp_path: Path) -> None:
    writer, reader = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    (writer.folder / "tensorboard").mkdir()
    (writer.folder / "tensorboard" / "events").write_text("many")
    for text in ("1", "2"):
        expected = fill(writer.folder, text)
        writer.push()
        reader.pull(is_sketch=True)
        assert contents(reader.folder) == {name: "" if "/" in name else text for name, text in expected.items()}


def test_so_has_a_sketch_of_a_milestone(tmp_path: Path) -> None:
    writer, reader = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    fill(writer.folder, "1")
    writer.push()
    assert not writer.has_new_weights()
    expected = fill(writer.folder / "milestones" / "25", "2")
    assert writer.has_new_weights()
    writer.push()
    reader.pull(is_sketch=True)
    kept = contents(reader.folder / "milestones" / "25")
    assert kept == {name: "" if "/" in name else text for name, text in expected.items()}


def test_one_file_is_amended_and_a_busy_place_is_left_alone(tmp_path: Path) -> None:
    writer, guest = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    expected = fill(writer.folder, "1")
    writer.push()
    with pytest.raises(InputError, match="is being written"):
        guest.refuse_if_busy()
    writer.push(is_open=False)
    guest.refuse_if_busy()
    guest.amend("metrics.csv", lambda file: file.write_text(file.read_text() + "2\n"))
    assert read_from(tmp_path / "url", tmp_path / "again") == {**expected, "metrics.csv": "1\n2\n"}


def test_who_cannot_amend_leaves_the_place_to_others(tmp_path: Path) -> None:
    writer, guest = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    expected = fill(writer.folder, "1")
    writer.push(is_open=False)

    def fail(file: Path) -> None:
        raise InputError("no")

    with pytest.raises(InputError, match=r"^no$"):
        guest.amend("metrics.csv", fail)
    writer.refuse_if_busy()
    assert read_from(tmp_path / "url", tmp_path / "again") == expected


def test_damage_is_told(tmp_path: Path) -> None:
    mirror = mirror_at(tmp_path / "url", tmp_path / "here")
    mirror.claim()
    fill(tmp_path / "here", "1")
    mirror.push()
    file = next((tmp_path / "url" / FILES).glob("metrics*"))
    file.write_text("2\n")
    with pytest.raises(InputError, match="is damaged"):
        read_from(tmp_path / "url", tmp_path / "there")
    file.unlink()
    with pytest.raises(InputError, match="has lost files"):
        read_from(tmp_path / "url", tmp_path / "there")
    listing = next((tmp_path / "url" / LISTS).iterdir())
    text = json.loads(listing.read_text())
    listing.write_text(json.dumps({**text, "body": text["body"] + " "}))
    assert read_from(tmp_path / "url", tmp_path / "nothing") == {}
