"""Tables as data, and as Markdown, LaTeX and CSV; the template report/table.html renders them as HTML."""

import csv
import html
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from expgen.report.entry import Entry
from expgen.text import printable


@dataclass(frozen=True)
class TableCell:
    """The text of a cell, its sort key and the score rows it comes from."""

    text: str
    sort: float | None = None
    entries: tuple[Entry, ...] = ()
    bold: bool = False
    more: str = ""  # shown when the reader opens the cell

    @property
    def full(self) -> str:
        """`text` and `more` in one line."""
        return f"{self.text}: {self.more}" if self.more else self.text

    @property
    def has_long_word(self) -> bool:
        """Whether a word is so long that a narrow column must break it."""
        return any(len(word) > 18 for word in self.text.split())

    @property
    def origin(self) -> str:
        """File and lines of the score rows, their episodes and commits, in one line."""
        lines: dict[str, list[int]] = {}
        for entry in self.entries:
            lines.setdefault(entry.file, []).append(entry.line)
        where = "; ".join(f"{file} line {', '.join(map(str, numbers))}" for file, numbers in lines.items())
        commits = ", ".join(sorted({entry.row.commit for entry in self.entries}))
        return f"{where} · {sum(entry.row.episodes for entry in self.entries):,} episodes · commit {commits}"


@dataclass(frozen=True)
class Table:
    """A caption, column headers and rows."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: list[list[TableCell]] = field(default_factory=list)

    def add(self, *cells: TableCell | str) -> None:
        """Append a row of cells or plain text."""
        row = [cell if isinstance(cell, TableCell) else TableCell(cell) for cell in cells]
        if len(row) != len(self.columns):
            raise ValueError(f"{self.name}: {len(row)} cells in a row of {len(self.columns)}")
        self.rows.append(row)

    @property
    def is_number(self) -> list[bool]:
        """For each column, whether any cell holds a number."""
        return [any(row[column].sort is not None for row in self.rows) for column in range(len(self.columns))]


def number_cell(value: float | None, digits: int = 2, entries: Sequence[Entry] = (), sign: bool = False) -> TableCell:
    """Return a cell with `digits` decimals; a dash if the value is None or nan."""
    if value is None or value != value:
        return TableCell("–")
    text = f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")
    return TableCell(text, value, tuple(entries))


def percent_cell(share: float | None, digits: int = 1, entries: Sequence[Entry] = ()) -> TableCell:
    """Return a share as a percentage; a dash if it is None or nan."""
    if share is None or share != share:
        return TableCell("–")
    return TableCell(f"{100 * share:.{digits}f} %".replace("-", "−"), share, tuple(entries))


def interval_cell(low: float, high: float, digits: int = 2) -> TableCell:
    """Return `8.12 to 8.44`, sorted by width; a dash if `low` is nan."""
    if low != low:
        return TableCell("–")
    return TableCell(f"{low:.{digits}f} to {high:.{digits}f}".replace("-", "−"), high - low)


def to_markdown(table: Table) -> str:
    """Return a pipe table under its caption; HTML, pipes and line ends in cells are escaped."""
    head, *rows = _texts(table, markdown_text, "**{}**")
    lines = ("| " + " | ".join(cells) + " |\n" for cells in (head, ["---"] * len(head), *rows))
    return f"{markdown_text(table.caption)}\n\n" + "".join(lines)


def _texts(table: Table, escape: Callable[[str], str], bold: str) -> list[list[str]]:
    """Return column headers and rows as strings, each escaped by `escape` and formatted with `bold` if it is bold."""
    rows = [[bold.format(escape(cell.full)) if cell.bold else escape(cell.full) for cell in row] for row in table.rows]
    return [list(map(escape, table.columns)), *rows]


def markdown_text(text: str) -> str:
    """Return `text` in one line with HTML and the special characters of Markdown escaped."""
    return re.sub(r"([\\`|\[\]*])", r"\\\1", html.escape(printable(text), quote=False))


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "–": "--", "…": r"\dots{}",
    "β": r"$\beta$", "γ": r"$\gamma$", "α": r"$\alpha$", "ε": r"$\varepsilon$", "λ": r"$\lambda$", "→": r"$\to$",
    "×": r"$\times$", "≈": r"$\approx$", "≥": r"$\ge$", "≤": r"$\le$",
}  # fmt: skip


def to_latex(table: Table) -> str:
    """Return a booktabs table with caption and label."""
    head, *body = (" & ".join(cells) + r" \\" for cells in _texts(table, latex_text, r"\textbf{{{}}}"))
    return "\n".join(
        [
            r"\begin{table}[ht]", r"\centering", rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}", r"\toprule", head,
            r"\midrule", *body, r"\bottomrule", r"\end{tabular}", rf"\caption{{{latex_text(table.caption)}}}",
            rf"\label{{tab:{table.name}}}", r"\end{table}", "",
        ]
    )  # fmt: skip


def latex_text(text: str) -> str:
    """Return `text` in one line with the special characters of LaTeX escaped."""
    return "".join(_LATEX.get(character, character) for character in printable(text))


def to_csv(table: Table) -> str:
    """Return CSV for spreadsheets; text that looks like a formula begins with an apostrophe."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(_texts(table, spreadsheet_text, "{}"))
    return file.getvalue()


def spreadsheet_text(text: str) -> str:
    """Return `text` in one line, with an apostrophe before `=1+1`, `@sum` or `-x`, but not before numbers."""
    text = printable(text).replace("−", "-")
    is_number = re.fullmatch(r"[+-]?[\d.,]+( %)?", text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) and not is_number else text
