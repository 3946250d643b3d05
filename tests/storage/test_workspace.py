"""workspace: uploads during the work, outages and deleted folders."""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import FailedStorage
from expgen.storage import scratch, store
from expgen.storage import workspace as module
from expgen.storage.mirror import Mirror
from expgen.storage.store import SECONDS_VARIABLE, StorageOutage, Store
from expgen.storage.workspace import workspace
from tests.storage.s3_server import Faults


@pytest.fixture
def outage(s3: Faults, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mirror], None]:
    """A workspace with a running upload and a storage time limit of five seconds."""
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    monkeypatch.setenv(SECONDS_VARIABLE, "5")

    def begin(space: Mirror) -> None:
        before, s3.refused = s3.refusals, 1.0
        (space.folder / "checkpoints").mkdir()
        (space.folder / "checkpoints" / "1.safetensors").write_bytes(b"new")
        _wait(lambda: s3.refusals > before)

    return begin


def _wait(for_what: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not for_what():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def _wait_for_output(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return all output so far."""
    output = ""

    def is_told() -> bool:
        nonlocal output
        output += capsys.readouterr().err
        return words in output

    _wait(is_told)
    return output


def test_failed_upload_is_reported_and_work_continues(bucket: str, s3: Faults, outage, capsys) -> None:
    with workspace(bucket) as space:
        outage(space)
        output = _wait_for_output("retried", capsys)
        s3.refused = 0.0
    assert (
        f"{bucket} did not respond within 5 s: " in output
        and "; training continues and the upload is retried" in output
    )


def test_work_that_ends_with_an_outage_does_not_wait_or_print(bucket: str, s3: Faults, outage, capsys) -> None:
    with pytest.raises(StorageOutage, match=r"^of another URL$"), workspace(bucket) as space:
        outage(space)
        raise StorageOutage("of another URL")
    _wait(lambda: all(thread.name != "expgen-upload" for thread in threading.enumerate()))
    assert s3.refused == 1.0
    assert capsys.readouterr().err == ""


def test_no_recovery_message_after_an_outage_ended_the_work(bucket, s3, outage, capsys, monkeypatch):
    monkeypatch.setenv(SECONDS_VARIABLE, "60")
    monkeypatch.setattr(store, "NOTICE_SECONDS", 0.2)
    with pytest.raises(StorageOutage), workspace(bucket) as space:
        outage(space)
        _wait_for_output(bucket, capsys)
        raise StorageOutage("no response")
    s3.refused = 0.0
    _wait(lambda: all(thread.name != "expgen-upload" for thread in threading.enumerate()))
    assert capsys.readouterr().err == ""


def test_new_checkpoint_is_uploaded_at_once_and_rows_later(bucket: str, s3: Faults, monkeypatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    with workspace(bucket) as space:
        _wait(lambda: space.uploads <= 1 and s3.requests > 0)
        (space.folder / "checkpoints").mkdir()
        for number in (1, 2):
            (space.folder / "checkpoints" / f"{number}.safetensors").write_bytes(b"new")
            _wait(lambda number=number: f"checkpoints/{number}.safetensors" in space.last.files)
        (space.folder / "metrics.csv").write_text("row\n")
        time.sleep(0.3)
        assert "metrics.csv" not in space.last.files
    assert "metrics.csv" in space.last.files and not space.last.is_open


def test_folder_deleted_during_the_search_does_not_stop_uploads(bucket: str, s3: Faults, monkeypatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    look, looks = Path.rglob, iter(range(100))

    def vanishes(self: Path, pattern: str) -> Any:
        if threading.current_thread().name == "expgen-upload" and next(looks, 3) < 3:
            raise FileNotFoundError(f"{self}/scoring")  # Path.rglob raises it if a folder is deleted during the search
        return look(self, pattern)

    monkeypatch.setattr(Path, "rglob", vanishes)
    with workspace(bucket) as space:
        (space.folder / "1.safetensors").write_bytes(b"new")
        _wait(lambda: "1.safetensors" in space.last.files)


def test_unreadable_folder_is_kept_after_a_failed_upload(bucket: str, s3: Faults) -> None:
    def fails(is_open: bool = True) -> None:
        raise OSError(5, "Input/output error")

    kept_in = r"Input/output error; files that were not uploaded are kept in"
    with pytest.raises(FailedStorage, match=kept_in) as raised, workspace(bucket) as space:
        space.upload = fails  # type: ignore[method-assign]
    kept = Path(str(raised.value).partition("are kept in ")[2].split()[0])
    assert kept == space.folder and kept.exists()
    scratch.lock_folder(kept.parent)  # delete it with this process, and not before


def test_workspace_with_deleted_folder_fails_and_keeps_the_url(bucket: str, s3: Faults) -> None:
    with workspace(bucket) as space:
        (space.folder / "config.json").write_text("{}")
    with pytest.raises(FailedStorage, match=r"config\.json was deleted"), workspace(bucket) as space:
        assert (space.folder / "config.json").exists()
        shutil.rmtree(space.folder)
    assert list(Mirror(Store(bucket), Path()).newest().files) == ["config.json"]
