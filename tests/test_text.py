"""Text for terminal output."""

import sys

import pytest

from expgen.text import duration, notify, printable, text_line


def test_printable_escapes_control_characters_only():
    assert printable("\x1b[31mred\x07\n") == "\\x1b[31mred\\x07\\n"
    assert printable("a\u202eb\x9b") == "a\\u202eb\\x9b"  # right-to-left override, one-byte escape
    assert printable("π_H – 95 %, “naïve”") == "π_H – 95 %, “naïve”"


def test_text_line_pads_cells():
    assert text_line(("a", 1, "b"), (3, 4, 5)) == "a    1     b"
    assert text_line(("a", 1), (3, 4), ">") == "  a     1"
    assert text_line(("\x1b[2J", "x"), (3, 0), gap=" ") == "\\x1b[2J x"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89.4, "89 s"), (90, "1.5 min"), (5399, "90.0 min"), (47_520, "13.2 h")]
)
def test_duration_uses_seconds_minutes_or_hours(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_notify_prints_a_line_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    notify("3 of 4 steps")
    assert capsys.readouterr() == ("", "3 of 4 steps\n")


def test_notify_ignores_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    full = open("/dev/full", "w", buffering=1)  # noqa: SIM115
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        notify("one")
        notify("two")
    with pytest.raises(OSError, match="No space left"):  # so the lines were refused
        full.close()
