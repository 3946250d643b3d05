"""Tables as data, and as Markdown, LaTeX and CSV for spreadsheets; as HTML by the template report/table.html."""

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
    """What a cell shows, what it sorts by and which score rows it comes from."""

    text: str
    sort: float | None = None
    entries: tuple[Entry, ...] = ()
    bold: bool = False
    more: str = ""  # shown on demand

    @property
    def full(self) -> str:
        """Everything, in one line."""
        return f"{self.text}: {self.more}" if self.more else self.text

    @property
    def has_long_word(self) -> bool:
        """Whether a column would have to be broken within a word."""
        return any(len(word) > 18 for word in self.text.split())

    @property
    def origin(self) -> str:
        """One line: which rows, how many episodes, which code."""
        lines: dict[str, list[int]] = {}
        for entry in self.entries:
            lines.setdefault(entry.file, []).append(entry.line)
        where = "; ".join(f"{file} line {', '.join(map(str, of_file))}" for file, of_file in lines.items())
        commits = ", ".join(sorted({entry.row.commit for entry in self.entries}))
        return f"{where} · {sum(entry.row.episodes for entry in self.entries):,} episodes · commit {commits}"


@dataclass(frozen=True)
class Table:
    """A caption, column heads and rows."""

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: list[list[TableCell]] = field(default_factory=list)

    def add(self, *cells: TableCell | str) -> None:
        """One more row; text stands for itself."""
        row = [cell if isinstance(cell, TableCell) else TableCell(cell) for cell in cells]
        if len(row) != len(self.columns):
            raise ValueError(f"{self.name}: {len(row)} cells in a row of {len(self.columns)}")
        self.rows.append(row)

    @property
    def is_number(self) -> list[bool]:
        """For each column whether it holds numbers, and perhaps dashes."""
        return [any(row[column].sort is not None for row in self.rows) for column in range(len(self.columns))]


def number_cell(value: float | None, digits: int = 2, entries: Sequence[Entry] = (), sign: bool = False) -> TableCell:
    """A number with so many digits after the point; a dash where there is none."""
    if value is None or value != value:
        return TableCell("–")
    text = f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")
    return TableCell(text, value, tuple(entries))


def percent_cell(share: float | None, digits: int = 1, entries: Sequence[Entry] = ()) -> TableCell:
    """A share as a percentage; a dash where there is none."""
    if share is None:
        return TableCell("–")
    return TableCell(f"{100 * share:.{digits}f} %".replace("-", "−"), share, tuple(entries))


def interval_cell(low: float, high: float, digits: int = 2) -> TableCell:
    """`8.12 to 8.44`; a dash where a row has none."""
    if low != low:
        return TableCell("–")
    return TableCell(f"{low:.{digits}f} to {high:.{digits}f}".replace("-", "−"), high - low)


def to_markdown(table: Table) -> str:
    """A pipe table under its caption; HTML, pipes and line ends in a cell are shown as text."""
    head, *rows = _texts(table, markdown_text, "**{}**")
    lines = ("| " + " | ".join(cells) + " |\n" for cells in (head, ["---"] * len(head), *rows))
    return f"{markdown_text(table.caption)}\n\n" + "".join(lines)


def _texts(table: Table, text: Callable[[str], str], bold: str) -> list[list[str]]:
    """Column heads and rows, each cell made `text` and put into `bold` where it is so."""
    rows = [[bold.format(text(cell.full)) if cell.bold else text(cell.full) for cell in row] for row in table.rows]
    return [list(map(text, table.columns)), *rows]


def markdown_text(text: str) -> str:
    """`text` in one line, with what Markdown would take for HTML, a link, code or the end of a cell spelled out."""
    return re.sub(r"([\\`|\[\]*])", r"\\\1", html.escape(printable(text), quote=False))


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "–": "--", "…": r"\dots{}",
    "β": r"$\beta$", "γ": r"$\gamma$", "α": r"$\alpha$", "ε": r"$\varepsilon$", "λ": r"$\lambda$", "→": r"$\to$",
    "×": r"$\times$", "≈": r"$\approx$", "≥": r"$\ge$", "≤": r"$\le$",
}  # fmt: skip


def to_latex(table: Table) -> str:
    """A booktabs table with its caption and label."""
    head, *body = (" & ".join(cells) + r" \\" for cells in _texts(table, latex_text, r"\textbf{{{}}}"))
    return "\n".join(
        [
            r"\begin{table}[ht]", r"\centering", rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}", r"\toprule", head,
            r"\midrule", *body, r"\bottomrule", r"\end{tabular}", rf"\caption{{{latex_text(table.caption)}}}",
            rf"\label{{tab:{table.name}}}", r"\end{table}", "",
        ]
    )  # fmt: skip


def latex_text(text: str) -> str:
    """`text` in one line, with LaTeX's special characters spelled out."""
    return "".join(_LATEX.get(character, character) for character in printable(text))


def to_csv(table: Table) -> str:
    """For spreadsheets: text that one would take for a formula begins with an apostrophe."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(_texts(table, spreadsheet_text, "{}"))
    return file.getvalue()


def spreadsheet_text(text: str) -> str:
    """`text` in one line; `=1+1`, `@sum` and `-x` begin with an apostrophe, numbers do not."""
    text = printable(text).replace("−", "-")
    is_number = re.fullmatch(r"[+-]?[\d.,]+( %)?", text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) and not is_number else text
