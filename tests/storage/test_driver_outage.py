"""`expgen reproduce` with a storage outage while it collects the results of its jobs."""

import io
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from expgen.cli.main import main
from expgen.reproduce.scale import SCALES
from expgen.storage import store
from expgen.storage.store import SECONDS_VARIABLE
from expgen.storage.view import fetch
from tests.cluster.tiny import NAMES, TINY
from tests.storage.s3_server import BUCKET, FORBIDDEN, UNAVAILABLE, Faults

OUT = f"s3://{BUCKET}/driver-outage"
WORDS = ["reproduce", *NAMES, "--scale", "smoke", "--device", "cpu", "--out", OUT]
LAST_JOB, WAITS = "minimaze-expgen: ", "retrying for 60 s"  # in the driver's output

Cue = tuple[str, Callable[[], None]]


class Cues(io.StringIO):
    """A stderr that runs one action after another when given words appear."""

    def __init__(self, cues: list[Cue]) -> None:
        super().__init__()
        self.cues = cues

    def write(self, text: str) -> int:
        if self.cues and self.cues[0][0] in text:
            self.cues.pop(0)[1]()
        return super().write(text)


@pytest.fixture
def drive(s3: Faults, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str]]]:
    """Run the command with a storage time limit; return its status and output."""
    monkeypatch.setitem(SCALES, "smoke", TINY)

    def run(patience: int, *cues: Cue) -> tuple[int, list[str]]:
        monkeypatch.setenv(SECONDS_VARIABLE, str(patience))
        output = Cues(list(cues))
        monkeypatch.setattr(sys, "stderr", output)
        status = main(WORDS)
        lines = output.getvalue().splitlines()
        s3.refused, s3.refusal = 0.0, UNAVAILABLE
        for thread in threading.enumerate():  # those of a driver that gave up must not use the next one's storage
            if thread.name in ("expgen-upload", "expgen-storage"):
                thread.join()
        return status, lines

    return run


def rows(folder: Path) -> str:
    fetch(OUT, folder)
    return (folder / "scores.csv").read_text()


def test_driver_waits_for_a_short_outage_and_fails_after_a_long_one(drive, s3, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(store, "NOTICE_SECONDS", 0.5)
    status, output = drive(60)
    assert status == 0, output
    expected = rows(tmp_path / "undisturbed")

    def goes() -> None:
        s3.refused = 1.0

    def comes_back() -> None:
        s3.refused = 0.0

    status, output = drive(60, (LAST_JOB, goes), (f"cannot list {OUT}/scores/", comes_back))
    assert status == 0, output
    waits = [line for line in output if line.startswith(f"expgen: cannot list {OUT}/scores/")]
    assert waits and waits[0].endswith(WAITS)
    assert any(line.startswith(f"expgen: {OUT}/scores/") and line.endswith(" responds again") for line in output)
    assert rows(tmp_path / "ridden out") == expected

    status, output = drive(5, (LAST_JOB, goes))
    assert status == 1  # a failure, not bad input
    assert output[-1].startswith(f"expgen: cannot list {OUT}/scores/") and "did not respond within 5 s" in output[-1]
    assert output[-1].endswith("the same command continues")


def test_missing_rights_fail_at_once(drive, s3: Faults) -> None:
    s3.refused, s3.refusal, s3.refusals = 1.0, FORBIDDEN, 0
    status, output = drive(60)
    assert status == 2 and len(output) == 1 and "PermissionError" in output[0]
    assert s3.refusals == 1
