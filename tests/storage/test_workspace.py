"""A workspace whose storage is away: what it tells while the work goes on, and that it tells no more when given up."""

import time
from collections.abc import Callable

import pytest

from expgen.storage import notice
from expgen.storage import workspace as module
from expgen.storage.store import PATIENCE_VARIABLE
from expgen.storage.workspace import Workspace, workspace
from tests.storage.s3_server import Faults


@pytest.fixture
def outage(s3: Faults, monkeypatch: pytest.MonkeyPatch) -> Callable[[Workspace], None]:
    """Begins, with a push under way; storage is asked for five seconds."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    monkeypatch.setenv(PATIENCE_VARIABLE, "5")

    def begin(space: Workspace) -> None:
        before, s3.refused = s3.refusals, 1.0
        (space.path / "checkpoints").mkdir()
        (space.path / "checkpoints" / "1.pt").write_bytes(b"new")
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


def test_while_the_work_goes_on_a_failed_push_is_told(bucket: str, s3: Faults, outage, capsys) -> None:
    with workspace(bucket) as space:
        outage(space)
        said = _until_told("tried again", capsys)
        s3.refused = 0.0
    assert f"at {bucket}: " in said and "; the work goes on, this is tried again" in said


def test_given_up_it_tells_nothing(bucket: str, s3: Faults, outage, capsys) -> None:
    with workspace(bucket) as space:
        outage(space)
        space.give_up()
    space._thread.join(60)
    assert not space._thread.is_alive() and s3.refused == 1.0
    assert capsys.readouterr().err == ""


def test_given_up_it_tells_of_no_answer_either(bucket: str, s3: Faults, outage, capsys, monkeypatch) -> None:
    monkeypatch.setenv(PATIENCE_VARIABLE, "60")
    monkeypatch.setattr(notice, "TELL_SECONDS", 0.2)
    with workspace(bucket) as space:
        outage(space)
        _until_told(f"at {bucket}", capsys)
        space.give_up()
        s3.refused = 0.0
    space._thread.join(60)
    assert not space._thread.is_alive() and capsys.readouterr().err == ""
