"""Text from outside, as it is printed."""

import pytest

from expgen.text import duration, printable, text_line


def test_control_characters_are_spelled_out_and_all_else_stays():
    assert printable("\x1b[31mred\x07\n") == "\\x1b[31mred\\x07\\n"
    assert printable("a\u202eb\x9b") == "a\\u202eb\\x9b"  # right-to-left override, and an escape of one byte
    assert printable("π_H – 95 %, “naïve”") == "π_H – 95 %, “naïve”"


def test_a_line_pads_its_cells_and_ends_with_the_last():
    assert text_line(("a", 1, "b"), (3, 4, 5)) == "a    1     b"
    assert text_line(("a", 1), (3, 4), ">") == "  a     1"
    assert text_line(("\x1b[2J", "x"), (3, 0), gap=" ") == "\\x1b[2J x"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89.4, "89 s"), (90, "1.5 min"), (5399, "90.0 min"), (47_520, "13.2 h")]
)
def test_durations_are_told_in_seconds_minutes_or_hours(seconds: float, text: str) -> None:
    assert duration(seconds) == text
