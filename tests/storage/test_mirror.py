"""Mirror: atomic snapshots when a writer or reader is killed at any point, and one owner."""

import json
import shutil
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from expgen.errors import FailedStorage, InputError, TakenOver
from expgen.storage import mirror as module
from expgen.storage.mirror import FILES, LIST_NAME, LISTS, Mirror, Snapshot, decode, object_name
from expgen.storage.store import StorageOutage, Store

pytest.importorskip("fsspec")


class Killed(BaseException):
    """Like SIGKILL: no code catches it."""


class FailingDisk(LocalFileSystem):
    """A disk that stops at the n-th change; a write is left half done."""

    def __init__(self, changes: int) -> None:
        super().__init__(skip_instance_cache=True)
        self.changes = changes

    def _count_change(self) -> None:
        self.changes -= 1
        if self.changes < 0:
            raise Killed

    def pipe_file(self, path: str, value: bytes, **more: Any) -> None:
        try:
            self._count_change()
        except Killed:
            super().pipe_file(path, value[: len(value) // 2])
            raise
        super().pipe_file(path, value)

    def rm_file(self, path: str) -> None:
        self._count_change()
        super().rm_file(path)


def mirror_at(url: Path, folder: Path, **keywords: Any) -> Mirror:
    folder.mkdir(exist_ok=True)
    url.mkdir(exist_ok=True)
    return Mirror(Store(f"file://{url}", seconds=60.0), folder, **keywords)


def fill(folder: Path, text: str) -> dict[str, str]:
    """Write three files with the content `text`, and a checkpoint with that name."""
    for old in folder.glob("checkpoints/a/*"):
        old.unlink()
    files = {"metrics.csv": f"{text}\n", "journal.json": text, f"checkpoints/a/{text}.safetensors": text}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return files


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def read_from(url: Path, folder: Path) -> dict[str, str]:
    mirror_at(url, folder).download()
    return contents(folder)


def test_snapshot_is_uploaded_and_downloaded_without_half_written_files(tmp_path: Path) -> None:
    mirror = mirror_at(tmp_path / "url", tmp_path / "here")
    mirror.claim()
    first = fill(tmp_path / "here", "1")
    (tmp_path / "here" / "half.json.12345678.part").touch()
    mirror.upload()
    second = fill(tmp_path / "here", "2")
    mirror.upload()
    assert first != second == read_from(tmp_path / "url", tmp_path / "there")
    written = (tmp_path / "there" / "metrics.csv").stat().st_mtime  # status uses it to find silent runs
    assert written == pytest.approx(mirror.last.written, abs=1e-3)
    assert len(list((tmp_path / "url" / FILES).rglob("*.safetensors"))) == 1  # as many as in the folder
    assert len(list((tmp_path / "url" / LISTS).iterdir())) == 1


def test_upload_killed_at_any_write_leaves_the_snapshot_before_or_after_it(tmp_path: Path) -> None:
    seen = []
    for changes in range(20):
        url, here = tmp_path / f"url{changes}", tmp_path / f"here{changes}"
        mirror = mirror_at(url, here)
        mirror.claim()
        before = fill(here, "before")
        mirror.upload()
        after = fill(here, "after")
        mirror.store.files = FailingDisk(changes)
        try:
            mirror.upload()
            was_killed = False
        except Killed:
            was_killed = True
        found = read_from(url, tmp_path / f"there{changes}")
        assert found in (before, after)
        seen.append((was_killed, found == after))
        next_owner = mirror_at(url, tmp_path / f"next_owner{changes}")
        next_owner.claim()
        next_owner.download()
        assert contents(next_owner.folder) == found
        next_owner.upload(is_open=False)  # deletes the files of the dead process
        assert len(list((url / FILES).rglob("*"))) == len(found) and len(list((url / LISTS).iterdir())) == 1
        if not was_killed:
            break
    assert {(True, False), (True, True), (False, True)} == set(seen)


def test_process_killed_while_it_claims_does_not_block_later_ones(tmp_path: Path) -> None:
    first = mirror_at(tmp_path / "url", tmp_path / "first")
    first.claim()
    expected = fill(first.folder, "1")
    first.upload()
    for name in "abcdefgh":
        mortal = mirror_at(tmp_path / "url", tmp_path / name)
        mortal.store.files = FailingDisk(0)
        with pytest.raises(Killed):
            mortal.claim()
        next_owner = mirror_at(tmp_path / "url", tmp_path / f"next_owner {name}")
        next_owner.claim()
        next_owner.download()
        next_owner.upload()
        assert contents(next_owner.folder) == expected


def test_download_survives_a_list_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    writer, reader = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    expected = fill(writer.folder, "1")
    lists = reader._lists()
    writer.upload()
    looks = iter([lists, reader._lists()])
    reader._lists = lambda: next(looks)  # type: ignore[method-assign] # the first one is of before the push
    reader.download()
    assert contents(reader.folder) == expected


def test_later_process_takes_over_and_the_earlier_one_cannot_upload(tmp_path: Path) -> None:
    early, late = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("early", "late"))
    early.claim()
    fill(early.folder, "early")
    early.upload()
    late.claim()
    late.download()
    fill(early.folder, "too late")
    with pytest.raises(TakenOver):
        early.upload()
    fill(late.folder, "late")
    late.upload()
    assert read_from(tmp_path / "url", tmp_path / "there")["journal.json"] == "late"


def test_one_of_two_concurrent_claims_stays_owner(tmp_path: Path) -> None:
    one, other = sorted(
        (mirror_at(tmp_path / "url", tmp_path / name) for name in ("a", "b")), key=lambda mirror: mirror.owner
    )
    other.claim()
    looks = chain([list], repeat(one._lists))  # the first was read before the other process wrote
    one._lists = lambda: next(looks)()  # type: ignore[method-assign]
    with pytest.raises(TakenOver):
        one.claim()
    other.upload(is_open=False)


def test_download_survives_a_snapshot_that_is_replaced_while_it_is_read(tmp_path: Path) -> None:
    writer, reader = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    fill(writer.folder, "1")
    writer.upload()
    read = reader.store.read

    def read_late(name: str) -> bytes:
        if name.startswith(LISTS):
            content = read(name)
            if b"/1." in content:
                after.update(fill(writer.folder, "2"))
                writer.upload()
            return content
        return read(name)

    after: dict[str, str] = {}
    reader.store.read = read_late  # type: ignore[method-assign]
    reader.download()
    assert contents(reader.folder) == after


def test_download_without_weights_has_empty_checkpoints_and_events(tmp_path: Path) -> None:
    writer, reader = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    (writer.folder / "tensorboard").mkdir()
    (writer.folder / "tensorboard" / "events").write_text("many")
    for text in ("1", "2"):
        expected = fill(writer.folder, text)
        writer.upload()
        reader.download(without_weights=True)
        sketch = {name: "" if "/" in name else text for name, text in expected.items()}
        assert contents(reader.folder) == {**sketch, "tensorboard/events": ""}


def test_download_without_weights_of_a_milestone_has_empty_checkpoints(tmp_path: Path) -> None:
    writer, reader = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    writer.claim()
    fill(writer.folder, "1")
    expected = fill(writer.folder / "milestones" / "25", "2")
    writer.upload()
    reader.download(without_weights=True)
    kept = contents(reader.folder / "milestones" / "25")
    assert kept == {name: "" if "/" in name else text for name, text in expected.items()}


def test_url_is_busy_until_its_owner_ends(tmp_path: Path) -> None:
    writer, guest = (mirror_at(tmp_path / "url", tmp_path / name) for name in ("here", "there"))
    guest.check_not_busy()
    writer.claim()
    fill(writer.folder, "1")
    writer.upload()
    with pytest.raises(InputError, match="is in use: a process uploaded to it 0 s ago"):
        guest.check_not_busy()
    writer.upload(is_open=False)
    guest.check_not_busy()


def test_deleted_folder_is_not_uploaded_as_empty(tmp_path: Path) -> None:
    mirror = mirror_at(tmp_path / "url", tmp_path / "here")
    mirror.claim()
    expected = fill(tmp_path / "here", "1")
    mirror.upload()
    shutil.rmtree(tmp_path / "here")
    with pytest.raises(FailedStorage, match=r"cannot upload .*here: journal\.json was deleted"):
        mirror.upload(is_open=False)
    assert read_from(tmp_path / "url", tmp_path / "there") == expected


def test_files_are_read_in_the_order_of_json_weights_rows(tmp_path: Path) -> None:
    for name in ("a.csv", "checkpoints/m/7.safetensors", "z.json", "b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n2\nhal")
    files, contents = mirror_at(tmp_path / "url", tmp_path)._read_folder(set())
    assert list(files)[:2] == ["z.json", "checkpoints/m/7.safetensors"]
    assert contents[object_name("a.csv", files["a.csv"])] == b"1\n2\n"  # complete rows only


def test_only_new_or_lost_files_are_uploaded(tmp_path: Path) -> None:
    mirror = mirror_at(tmp_path / "url", tmp_path / "here")
    fill(mirror.folder, "1")
    files, contents = mirror._read_folder(set())
    stored = set(contents)
    assert mirror._read_folder(stored) == (files, {})
    assert mirror_at(tmp_path / "url", tmp_path / "here")._read_folder(stored) == (
        files,
        {},
    )  # without reading the file
    (mirror.folder / "metrics.csv").write_text("1\n2\n")
    assert list(mirror._read_folder(stored)[1].values()) == [b"1\n2\n"]
    lost = object_name("journal.json", files["journal.json"])
    assert mirror._read_folder(stored - {lost})[1][lost] == b"1"


def test_upload_survives_a_checkpoint_replaced_during_the_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = mirror_at(tmp_path / "url", tmp_path / "here")
    fill(mirror.folder, "1")
    read = module.read_bytes

    def read_slowly(path: Path) -> bytes:
        if path.name == "1.safetensors":
            fill(mirror.folder, "2")  # the folder changes between listing and reading
        return read(path)

    monkeypatch.setattr(module, "read_bytes", read_slowly)
    files, _ = mirror._read_folder(set())
    assert [name for name in files if name.startswith("checkpoints")] == ["checkpoints/a/2.safetensors"]


def test_object_name_contains_name_and_checksum() -> None:
    digest = "0123456789abcdef" + "0" * 48
    assert object_name("checkpoints/a/12.safetensors", digest) == "files/0123456789abcdef-checkpoints-a-12.safetensors"


def test_list_names_sort_in_order_of_writing(tmp_path: Path) -> None:
    names = []
    for _ in range(11):
        mirror = mirror_at(tmp_path / "url", tmp_path / "here")
        mirror.claim()
        for text in ("one", "two"):
            fill(mirror.folder, text)
            mirror.upload()
            names += [name for name in mirror._lists() if name not in names]
    assert len(names) == 22 and names == sorted(names) and all(map(LIST_NAME.fullmatch, names))


def test_upload_works_after_a_list_that_could_not_be_written(tmp_path: Path) -> None:
    """Also if the storage has written it in spite of the error."""
    mirror = mirror_at(tmp_path / "url", tmp_path / "here")
    mirror.claim()
    for text, has_written in (("one", False), ("two", True)):
        expected, write = fill(mirror.folder, text), mirror.store.write

        def fail(name: str, content: bytes, has_written: bool = has_written, write: Any = write) -> None:
            if has_written or not name.startswith(LISTS):
                write(name, content)
            if name.startswith(LISTS):
                raise StorageOutage("no response")

        mirror.store.write = fail  # type: ignore[method-assign]
        with pytest.raises(StorageOutage):
            mirror.upload()
        mirror.store.write = write  # type: ignore[method-assign]
        mirror.upload()
        assert read_from(tmp_path / "url", tmp_path / text) == expected


SNAPSHOT = Snapshot(True, 99.25, {"checkpoints/a/12.safetensors": "0123456789abcdef" * 4})


def test_truncated_list_is_incomplete() -> None:
    text = json.dumps(SNAPSHOT._asdict()).encode()
    assert decode(text, "s3://bucket/run") == SNAPSHOT
    assert all(decode(text[:end], "s3://bucket/run") is None for end in range(len(text)))


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/../../outside", "", "a\\b", "a//b"])
def test_list_cannot_name_files_outside_its_folder(name: str) -> None:
    text = json.dumps(SNAPSHOT._replace(files={name: "0" * 64})._asdict()).encode()
    with pytest.raises(InputError, match=r"s3://bucket/run/lists holds a list that this version of expgen did not"):
        decode(text, "s3://bucket/run")


@pytest.mark.parametrize("data", [[], {}, 1, "text", {"files": {}}, {"files": [], "is_open": 1, "written": 2},
                                  {"format": "expgen-list-1", "sha256": "", "body": ""}])  # fmt: skip
def test_list_of_another_program_or_version_is_rejected(data: Any) -> None:
    with pytest.raises(InputError, match="did not write"):
        decode(json.dumps(data).encode(), "s3://bucket/run")


@pytest.mark.parametrize("change", [{"files": {"a": "/../../outside"}}, {"files": {"a": None}}, {"written": 1e999},
                                    {"written": "now"}, {"written": -1}])  # fmt: skip
def test_list_with_damaged_checksums_or_times_is_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="did not write"):
        decode(json.dumps({**SNAPSHOT._asdict(), **change}).encode(), "s3://bucket/run")


def test_download_does_not_write_through_a_link_in_the_folder(tmp_path: Path) -> None:
    mirror = mirror_at(tmp_path / "url", tmp_path / "here")
    mirror.claim()
    fill(mirror.folder, "1")
    mirror.upload()
    (tmp_path / "there").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "there" / "checkpoints").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match=r"checkpoints.* is a link to"):
        mirror_at(tmp_path / "url", tmp_path / "there").download()
    assert not list((tmp_path / "outside").iterdir())


def test_damaged_and_missing_files_at_the_url_are_rejected(tmp_path: Path) -> None:
    mirror = mirror_at(tmp_path / "url", tmp_path / "here")
    mirror.claim()
    fill(tmp_path / "here", "1")
    mirror.upload()
    file = next((tmp_path / "url" / FILES).glob("*metrics*"))
    file.write_text("2\n")
    with pytest.raises(InputError, match=r"is damaged: the checksum of metrics\.csv differs"):
        read_from(tmp_path / "url", tmp_path / "there")
    file.unlink()
    with pytest.raises(InputError, match="lacks files that its list names"):
        read_from(tmp_path / "url", tmp_path / "there")
    listing = next((tmp_path / "url" / LISTS).iterdir())
    listing.write_bytes(listing.read_bytes()[:-1])
    assert read_from(tmp_path / "url", tmp_path / "nothing") == {}
