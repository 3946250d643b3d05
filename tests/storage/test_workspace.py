"""A workspace whose storage is away: what it prints while the work goes on, and that it is silent once it gave up."""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expgen.errors import FailedStorage
from expgen.storage import store
from expgen.storage import workspace as module
from expgen.storage.mirror import Mirror
from expgen.storage.store import SECONDS_VARIABLE, StorageOutage, Store
from expgen.storage.workspace import workspace
from tests.storage.s3_server import Faults


@pytest.fixture
def outage(s3: Faults, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mirror], None]:
    """Begins, with an upload under way; storage is asked for five seconds."""
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


def _until_told(words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """All that is said until then."""
    said = ""

    def is_told() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return words in said

    _wait(is_told)
    return said


def test_failed_upload_is_reported_while_the_work_goes_on(bucket: str, s3: Faults, outage, capsys) -> None:
    with workspace(bucket) as space:
        outage(space)
        said = _until_told("retried", capsys)
        s3.refused = 0.0
    assert f"{bucket} did not respond within 5 s: " in said and "; training continues and the upload is retried" in said


def test_work_that_ends_with_an_outage_waits_and_prints_no_more(bucket: str, s3: Faults, outage, capsys) -> None:
    with pytest.raises(StorageOutage, match=r"^of another URL$"), workspace(bucket) as space:
        outage(space)
        raise StorageOutage("of another URL")
    _wait(lambda: all(thread.name != "expgen-upload" for thread in threading.enumerate()))
    assert s3.refused == 1.0
    assert capsys.readouterr().err == ""


def test_after_an_outage_ended_the_work_nothing_says_that_storage_is_back(bucket, s3, outage, capsys, monkeypatch):
    monkeypatch.setenv(SECONDS_VARIABLE, "60")
    monkeypatch.setattr(store, "NOTICE_SECONDS", 0.2)
    with pytest.raises(StorageOutage), workspace(bucket) as space:
        outage(space)
        _until_told(bucket, capsys)
        raise StorageOutage("no response")
    s3.refused = 0.0
    _wait(lambda: all(thread.name != "expgen-upload" for thread in threading.enumerate()))
    assert capsys.readouterr().err == ""


def test_new_checkpoint_is_uploaded_soon_and_rows_alone_are_not(bucket: str, s3: Faults, monkeypatch) -> None:
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


def test_folder_that_comes_and_goes_does_not_end_the_uploads(bucket: str, s3: Faults, monkeypatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    look, looks = Path.rglob, iter(range(100))

    def vanishes(self: Path, pattern: str) -> Any:
        if threading.current_thread().name == "expgen-upload" and next(looks, 3) < 3:
            raise FileNotFoundError(f"{self}/scoring")  # what Path.rglob does where a folder is deleted under it
        return look(self, pattern)

    monkeypatch.setattr(Path, "rglob", vanishes)
    with workspace(bucket) as space:
        (space.folder / "1.safetensors").write_bytes(b"new")
        _wait(lambda: "1.safetensors" in space.last.files)


def test_work_is_kept_where_it_cannot_even_be_read(bucket: str, s3: Faults) -> None:
    def fails(is_open: bool = True) -> None:
        raise OSError(5, "Input/output error")

    kept_in = r"Input/output error; files that were not uploaded are kept in"
    with pytest.raises(FailedStorage, match=kept_in) as told, workspace(bucket) as space:
        space.upload = fails  # type: ignore[method-assign]
    kept = Path(str(told.value).partition("are kept in ")[2].split()[0])
    assert kept == space.folder and kept.exists()
    (kept.parent / "lock").touch()  # so that it ends with the process after all


def test_workspace_whose_folder_is_deleted_fails_and_leaves_the_url_as_it_was(bucket: str, s3: Faults) -> None:
    with workspace(bucket) as space:
        (space.folder / "config.json").write_text("{}")
    with pytest.raises(FailedStorage, match=r"config\.json was deleted"), workspace(bucket) as space:
        assert (space.folder / "config.json").exists()
        shutil.rmtree(space.folder)
    assert list(Mirror(Store(bucket), Path()).newest().files) == ["config.json"]
