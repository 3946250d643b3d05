"""Text from outside, as it is printed."""

from expgen.text import printable, text_line


def test_control_characters_are_spelled_out_and_all_else_stays():
    assert printable("\x1b[31mred\x07\n") == "\\x1b[31mred\\x07\\n"
    assert printable("a\u202eb\x9b") == "a\\u202eb\\x9b"  # right-to-left override, and an escape of one byte
    assert printable("π_H – 95 %, “naïve”") == "π_H – 95 %, “naïve”"


def test_a_line_pads_its_cells_and_ends_with_the_last():
    assert text_line(("a", 1, "b"), (3, 4, 5)) == "a    1     b"
    assert text_line(("a", 1), (3, 4), ">") == "  a     1"
    assert text_line(("\x1b[2J", "x"), (3, 0), gap=" ") == "\\x1b[2J x"
