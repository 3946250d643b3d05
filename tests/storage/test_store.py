"""Store: retries, time limits and messages."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem

from expgen.errors import FailedStorage, InputError
from expgen.storage import store as module
from expgen.storage.store import SECONDS_VARIABLE, StorageOutage, Store


class Disk(LocalFileSystem):
    """A file system that calls `before` ahead of every read."""

    def __init__(self, before: Callable[[], None]) -> None:
        super().__init__(skip_instance_cache=True)
        self.before = before

    def cat_file(self, path: str, **more: Any) -> bytes:
        self.before()
        return super().cat_file(path)


def store_with(folder: Path, before: Callable[[], None], seconds: float = 60.0) -> Store:
    (folder / "file").write_bytes(b"content")
    store = Store(f"file://{folder}", seconds)
    store.files = Disk(before)
    return store


def failing(times: int, error: Exception) -> tuple[Callable[[], None], list[float]]:
    """Return a function that raises `error` a number of times, and the times of its calls."""
    calls: list[float] = []

    def before() -> None:
        calls.append(time.monotonic())
        if len(calls) <= times:
            raise error

    return before, calls


def test_failed_operation_is_retried_with_growing_pauses(tmp_path: Path) -> None:
    before, calls = failing(3, OSError("not now"))
    assert store_with(tmp_path, before).read("file") == b"content"
    assert len(calls) == 4
    assert all(later - earlier < 2.5 for earlier, later in pairwise(calls))  # at most 0.25, 0.5, 1 s


@pytest.mark.parametrize("error", [PermissionError("no"), ImportError("no"), NotImplementedError("no")])
def test_permanent_error_is_not_retried(error: Exception, tmp_path: Path) -> None:
    before, calls = failing(9, error)
    with pytest.raises(InputError, match=f"^cannot read file://{tmp_path}/file: {type(error).__name__}: no$") as raised:
        store_with(tmp_path, before).read("file")
    assert len(calls) == 1 and not isinstance(raised.value, FailedStorage)


def test_missing_file_is_not_retried(tmp_path: Path) -> None:
    before, calls = failing(0, OSError())
    with pytest.raises(FileNotFoundError):
        store_with(tmp_path, before).read("absent")
    assert len(calls) == 1


def test_errors_until_the_time_limit_are_an_outage(tmp_path: Path) -> None:
    before, calls = failing(10**6, OSError("not now"))
    began = time.monotonic()
    with pytest.raises(StorageOutage, match=r"did not respond within 1 s: OSError: not now$") as raised:
        store_with(tmp_path, before, seconds=1.0).read("file")
    assert len(calls) > 1 and time.monotonic() - began < 5
    assert isinstance(raised.value, FailedStorage) and str(raised.value).startswith(
        f"cannot read file://{tmp_path}/file"
    )


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    """An event for hanging operations, set by the test or after it."""
    event = threading.Event()
    yield event
    event.set()


def test_hanging_operation_ends_at_the_time_limit(tmp_path: Path, hanging: threading.Event) -> None:
    began = time.monotonic()
    with pytest.raises(StorageOutage, match=r"did not respond within 1 s: TimeoutError: no response$"):
        store_with(tmp_path, lambda: hanging.wait() and None, seconds=1.0).read("file")
    assert time.monotonic() - began < 5


class Notices(list[str]):
    """The lines printed about this test's storage; calls `then` after each. Threads of other tests may print too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.then: Callable[[], None] = lambda: None

    def __call__(self, line: str) -> None:
        if str(self.folder) in line:
            self.append(line)
            self.then()


@pytest.fixture
def notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Notices:
    printed = Notices(tmp_path)
    monkeypatch.setattr(module, "NOTICE_SECONDS", 1.0)
    monkeypatch.setattr(module, "notify", printed)
    return printed


def test_slow_operation_and_its_end_are_reported(tmp_path: Path, hanging: threading.Event, notices: Notices) -> None:
    notices.then = hanging.set
    assert store_with(tmp_path, lambda: hanging.wait() and None).read("file") == b"content"
    url = f"file://{tmp_path}"
    waits = f"expgen: cannot read {url}/file yet: TimeoutError: no response; retrying for 60 s"
    assert notices == [waits, f"expgen: {url} responds again"]


def test_fast_operation_is_not_reported(tmp_path: Path, notices: Notices) -> None:
    store_with(tmp_path, lambda: None).read("file")
    assert not notices


def test_report_names_the_error_and_a_given_up_store_does_not_retry_or_print(tmp_path: Path, notices: Notices) -> None:
    store = store_with(tmp_path, lambda: None)
    before, calls = failing(10**6, OSError("not now"))
    store.files = Disk(before)
    notices.then = store.is_given_up.set
    began = time.monotonic()
    with pytest.raises(StorageOutage):
        store.read("file")
    assert time.monotonic() - began < 10
    assert notices == [f"expgen: cannot read file://{tmp_path}/file yet: OSError: not now; retrying for 60 s"]
    count = len(calls)
    with pytest.raises(StorageOutage):
        store.read("file")
    assert len(calls) == count + 1 and len(notices) == 1


@pytest.mark.parametrize("text", ["", "abc", "-1", "inf", "nan", "1e3", "٣", "9" * 14])
def test_storage_seconds_variable_must_be_a_number(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(SECONDS_VARIABLE, text)
    with pytest.raises(InputError, match=f"^{SECONDS_VARIABLE} is .*; accepted: a number of seconds"):
        Store(f"file://{tmp_path}")


def test_files_are_written_listed_and_deleted_at_any_depth(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/new/run/")
    assert store.names() == store.names("files") == []
    for name in ("files/b/c", "files/a", "lists/d"):
        store.write(name, name.encode())
    assert store.names("files") == ["files/a", "files/b/c"] and store.read("files/b/c") == b"files/b/c"
    assert store.names() == ["files/a", "files/b/c", "lists/d"]
    for _ in range(2):
        store.delete("files/a")
    assert store.names("files") == ["files/b/c"]


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "files/../../outside", "a\\b"])
def test_names_outside_the_url_are_rejected(name: str, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("theirs")
    store = Store(f"file://{tmp_path}/run")
    for operation in (store.read, store.delete, store.names, lambda name: store.write(name, b"")):
        with pytest.raises(InputError, match="is not safe"):
            operation(name)
    assert (tmp_path / "outside").read_text() == "theirs"


@pytest.mark.parametrize("url", ["s3://", "file:///", "://", "s3:"])
def test_url_without_a_path_is_no_folder_of_this_machine(url: str) -> None:
    with pytest.raises(InputError, match=f"{url} has no path; accepted: a folder, or a URL as s3:"):
        Store(url)


def test_url_that_its_driver_refuses_is_one_line() -> None:
    with pytest.raises(InputError, match=r"cannot open reference://x: TypeError: .*; accepted: a folder, or a URL"):
        Store("reference://x")


def test_driver_that_cannot_connect_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError("Connection refused")

    monkeypatch.setattr("fsspec.core.url_to_fs", refuse)
    with pytest.raises(StorageOutage, match="cannot open ftp://host/run: ConnectionRefusedError: Connection refused"):
        Store("ftp://host/run")
