"""Text from outside (names of runs, agents and games), made safe to print."""

from collections.abc import Sequence


def printable(text: object) -> str:
    """`text` in one line, with control characters such as terminal escapes spelled out: `\\x1b[31m`."""
    return "".join(part if part.isprintable() else part.encode("unicode_escape").decode() for part in str(text))


def text_line(cells: Sequence[object], widths: Sequence[int], align: str = "<", gap: str = "  ") -> str:
    """One line of a printed table.

    `cells` are shown as `printable` text, each at least as wide as its entry of `widths`; `align` is `<` or `>`; `gap`
    stands between cells.
    """
    padded = (f"{printable(cell):{align}{width}}" for cell, width in zip(cells, widths, strict=True))
    return gap.join(padded).rstrip()
