"""What is said of an operation that takes long."""

import threading

import pytest

from expgen.storage import notice
from expgen.storage.notice import Notice


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notice, "TELL_SECONDS", 0.2)


def told(reason: str, error: type[Exception] | None, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of an operation during which the time to tell comes."""
    try:
        waiting = Notice("s3://a", "write b", 300)
        waiting.reason = reason
        with waiting:
            waiting._timer.join()
            if error is not None:
                raise error
    except (OSError, ValueError):
        pass
    return said_of_a(capsys)


def said_of_a(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """A thread of another test may still be speaking of its own storage."""
    return [line for line in capsys.readouterr().err.splitlines() if "s3://a" in line]


def test_slow_is_not_refused(capsys: pytest.CaptureFixture[str]) -> None:
    waits = "expgen: still waiting to write b at s3://a; it is tried for 300 s"
    assert told("", None, capsys) == [waits, "expgen: s3://a answers again"]


def test_what_the_storage_gives_as_a_reason_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    said = told("no", ValueError, capsys)
    assert said == ["expgen: cannot write b at s3://a: no; it is tried for 300 s"]
    assert told("no", FileNotFoundError, capsys)[1:] == ["expgen: s3://a answers again"]


def test_after_the_end_nothing_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notice, "TELL_SECONDS", threading.TIMEOUT_MAX / 2)
    with Notice("s3://a", "write b", 300) as waiting:
        pass
    waiting._tell()
    assert not said_of_a(capsys)


def test_once_nobody_waits_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    waits = True
    with Notice("s3://a", "write b", 300, lambda: not waits) as waiting:
        waiting._timer.join()
        assert len(said_of_a(capsys)) == 1
        waits = False
    assert not said_of_a(capsys)
