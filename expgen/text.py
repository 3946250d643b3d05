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


def duration(seconds: float) -> str:
    """`42 s`, `12.5 min` or `13.2 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 90 * 60 else f"{seconds / 3600:,.1f} h"


def short_repr(thing: object) -> str:
    """`repr(thing)` for an error line where it is short, else its type."""
    text = repr(thing)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(thing).__name__}"
