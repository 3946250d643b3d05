"""Atomic writes, safe names and readers of regular files."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from expgen.errors import FailedStorage, InputError
from expgen.files import (
    UnreadableFile,
    check_name,
    delete_partial_files,
    join_inside,
    open_regular,
    read_bytes,
    write_atomic,
)


def test_write_atomic_replaces_the_file_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    for text in (b"one", b"two"):
        write_atomic(tmp_path / "new" / "file", text)
    assert (tmp_path / "new" / "file").read_bytes() == b"two"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


def test_write_atomic_replaces_a_link_and_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("theirs")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomic(tmp_path / "link", b"ours")
    assert (tmp_path / "target").read_text() == "theirs" and (tmp_path / "link").read_text() == "ours"


def test_write_atomic_rejects_a_folder_inside_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="accepted: a writable folder"):
        write_atomic(tmp_path / "file" / "run" / "config.json", b"{}")
    assert (tmp_path / "file").read_text() == "mine"


def test_write_atomic_creates_only_as_many_folders_as_allowed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    write_atomic(run / "checkpoints" / "a" / "1", b"", new_folders=2)
    write_atomic(run / "config.json", b"", new_folders=0)
    shutil.rmtree(run)
    for path, new_folders in ((run / "checkpoints" / "a" / "1", 2), (run / "config.json", 0)):
        with pytest.raises(FailedStorage, match=f"cannot write {path}: the folder {run} no longer exists"):
            write_atomic(path, b"", new_folders)
    assert not run.exists()


def test_delete_partial_files_deletes_only_temporary_files(tmp_path: Path) -> None:
    ours = ["a.json.12345678.part", "checkpoints/deep/b.safetensors.0a1b2c3d.part"]
    others = ["film.part", "party", "checkpoints/deep/b", "checkpoints/film.part", "downloads/x.12345678.part"]
    for name in (*ours, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    delete_partial_files(tmp_path, ("checkpoints", "scoring"))
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == sorted(others)


@pytest.mark.parametrize("name", ["a", "a.json", "runs/maze-ppo/config.json", "...", "a..b", "ä/ß", "with space"])
def test_join_inside_accepts_plain_names(name: str, tmp_path: Path) -> None:
    assert check_name(name) == name
    assert join_inside(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "a/../b", "a/..", "/etc/passwd", "a//b", "a/", "./a", "a\\b", "..\\a", "a\0b", "a\nb",
     "\x1b[2J", "a\x7f"],
)  # fmt: skip
def test_join_inside_rejects_unsafe_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        join_inside(tmp_path, name)
    line = str(raised.value)
    assert repr(name) in line and "accepted: a relative path" in line and line.isprintable()


def test_join_inside_rejects_links_out_of_the_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "real").mkdir(parents=True)
    outside.mkdir()
    (inside / "folder").symlink_to(outside)
    (inside / "dangling").symlink_to(outside / "absent")
    (inside / "sibling").symlink_to(f"{inside}2/a")  # same prefix as the folder
    (inside / "fine").symlink_to("real")
    (inside / "loop").symlink_to("loop")
    for name in ("folder", "folder/file", "dangling", "sibling"):
        with pytest.raises(InputError, match=f"{inside / name} is a link to .*; accepted: files and folders inside"):
            join_inside(inside, name)
    assert join_inside(inside, "fine/file") == inside / "fine" / "file"
    (tmp_path / "alias").symlink_to(inside)  # the folder itself may be a link
    assert join_inside(tmp_path / "alias", "real/file") == tmp_path / "alias" / "real" / "file"
    with pytest.raises(InputError):
        write_atomic(join_inside(inside, "loop") / "file", b"")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(path))


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize(("make", "kind"), [(pipe, "pipe"), (bound_socket, "socket"), (link_to_device, "device")])
def test_readers_reject_pipes_sockets_and_devices(make: Callable[[Path], None], kind: str, tmp_path: Path) -> None:
    make(tmp_path / "x")
    for read in (open_regular, read_bytes):
        with pytest.raises(UnreadableFile, match=f"^{tmp_path / 'x'} is a {kind}; accepted: a regular file$"):
            read(tmp_path / "x")
    with pytest.raises(InputError):
        join_inside(tmp_path, "x")


def test_read_bytes_rejects_folders_and_too_large_files(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="is a folder"):
        read_bytes(tmp_path)
    (tmp_path / "file").write_bytes(b"12345")
    assert read_bytes(tmp_path / "file", 5) == b"12345"
    with pytest.raises(UnreadableFile, match="has 5 bytes; accepted: at most 4"):
        read_bytes(tmp_path / "file", 4)
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(UnreadableFile, match="accepted: at most"):
        read_bytes(tmp_path / "sparse")
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "absent")


def test_write_atomic_creates_a_folder_deleted_during_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, deleted = tmp_path / "run" / "checkpoints" / "member0" / "1", os.replace, []
    (tmp_path / "run").mkdir()

    def delete_once(source: Path, target: Path) -> None:
        if not deleted:
            deleted.append(shutil.rmtree(path.parents[1]))
        real(source, target)

    monkeypatch.setattr(os, "replace", delete_once)
    write_atomic(path, b"whole", new_folders=2)
    assert path.read_bytes() == b"whole" and [file.name for file in path.parent.iterdir()] == ["1"]
