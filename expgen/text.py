"""Text for terminal output: escaped names, table lines, durations, and lines about work in progress."""

import contextlib
import os
import sys
from collections.abc import Sequence


def printable(text: object) -> str:
    """Return `text` in one line with control characters, such as terminal escapes, spelled out: `\\x1b[31m`."""
    return "".join(part if part.isprintable() else part.encode("unicode_escape").decode() for part in str(text))


def text_line(cells: Sequence[object], widths: Sequence[int], align: str = "<", gap: str = "  ") -> str:
    """Return a line of a table: printable `cells`, padded to `widths`, aligned left (`<`) or right (`>`)."""
    padded = (f"{printable(cell):{align}{width}}" for cell, width in zip(cells, widths, strict=True))
    return gap.join(padded).rstrip()


def duration(seconds: float) -> str:
    """Return `42 s`, `12.5 min` or `13.2 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 90 * 60 else f"{seconds / 3600:,.1f} h"


def notify(text: str) -> None:
    """Print a line about work in progress to standard error; if its reader is gone, print nothing from then on."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:  # as in `2>&1 | head`; Python would fail at every further line and at its end
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    except OSError:  # a log on a full disk
        pass


def short_repr(value: object) -> str:
    """Return `repr(value)` if it is short and in one line, else the name of its type."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"
