"""A short form of `make attack`: a few tries of each kind."""

import subprocess
import sys
from pathlib import Path

import pytest

from expgen.errors import InputError
from tests.attack import bad_folders, hostile_runs, kills, stores, wrong_calls
from tests.attack.sandbox import Outcome, flaw_in

ROOT = Path(__file__).parents[2]
GOOD = Outcome(2, "", "expgen: --gamma is 2; accepted: 0 to 1\n", 0.1, 0, False)


@pytest.mark.slow
def test_short_attack_finds_nothing() -> None:
    words = [sys.executable, str(ROOT / "scripts" / "attack"), "--short"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize(
    ("flaw", "change"),
    [
        ("hangs", {"is_hung": True}),
        ("ends with status 139", {"status": 139}),
        ("prints a traceback", {"err": "Traceback (most recent call last):\nKeyError: 1\n"}),
        ("gives an obscure error", {"status": 1, "err": "expgen: failed: KeyError: 1 (--debug shows where)\n"}),
        ("refuses without a line", {"err": ""}),
        ("prints control characters", {"out": "\x1b[31m"}),
        ("takes 2.0 GB of memory", {"grown_bytes": 2 * 10**9}),
        ("", {}),
    ],
)
def test_flaws_of_commands_are_detected(flaw: str, change: dict) -> None:
    assert flaw_in(GOOD._replace(**change)).startswith(flaw) and bool(flaw_in(GOOD._replace(**change))) == bool(flaw)


def test_obscure_errors_of_calls_are_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(levels: object) -> None:
        raise (InputError("levels is 3") if levels == 3 else KeyError(levels))

    monkeypatch.setattr(wrong_calls.expgen.LevelSet, "parse", refuse)
    assert wrong_calls.flaw_of(wrong_calls.Call("LevelSet.parse", "levels", 3), tmp_path) == ""
    assert wrong_calls.flaw_of(wrong_calls.Call("LevelSet.parse", "levels", 4), tmp_path) == "raises KeyError: 4"


def test_every_attack_has_cases() -> None:
    assert len(hostile_runs.named()) > 60 and len(stores.NAMES) > 20 and len(wrong_calls.ODD) > 25
    assert len(bad_folders.WAYS) == 5 and len(kills.ENDINGS) == 8
