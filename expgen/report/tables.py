"""Tables as data, and as Markdown, LaTeX and HTML."""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from expgen.report.entry import Entry


@dataclass(frozen=True)
class TableCell:
    """What a cell shows, what it sorts by and which score rows it comes from."""

    text: str
    sort: float | None = None
    entries: tuple[Entry, ...] = ()
    bold: bool = False


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


def number_cell(value: float, digits: int = 2, entries: Sequence[Entry] = (), sign: bool = False) -> TableCell:
    """A number with so many digits after the point."""
    text = f"{value:{'+' if sign else ''}.{digits}f}".replace("-", "−")
    return TableCell(text, value, tuple(entries))


def percent_cell(share: float, digits: int = 1, entries: Sequence[Entry] = ()) -> TableCell:
    """A share as a percentage."""
    return TableCell(f"{100 * share:.{digits}f} %".replace("-", "−"), share, tuple(entries))


def to_markdown(table: Table) -> str:
    """A pipe table under its caption."""
    lines = [_pipes(table.columns), _pipes("---" for _ in table.columns)]
    for row in table.rows:
        lines.append(_pipes(f"**{cell.text}**" if cell.bold else cell.text for cell in row))
    return f"{table.caption}\n\n" + "\n".join(lines) + "\n"


def _pipes(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "–": "--", "…": r"\dots{}",
    "β": r"$\beta$", "γ": r"$\gamma$", "α": r"$\alpha$", "ε": r"$\varepsilon$", "λ": r"$\lambda$", "→": r"$\to$",
    "×": r"$\times$", "≥": r"$\ge$", "≤": r"$\le$",
}  # fmt: skip


def to_latex(table: Table) -> str:
    """A booktabs table with its caption and label."""
    head = " & ".join(map(latex_text, table.columns)) + r" \\"
    body = [
        " & ".join(rf"\textbf{{{latex_text(cell.text)}}}" if cell.bold else latex_text(cell.text) for cell in row)
        + r" \\"
        for row in table.rows
    ]
    columns = "l" * len(table.columns)
    return "\n".join(
        [
            r"\begin{table}[ht]", r"\centering", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule",
            *body, r"\bottomrule", r"\end{tabular}", rf"\caption{{{latex_text(table.caption)}}}",
            rf"\label{{tab:{table.name}}}", r"\end{table}", "",
        ]
    )  # fmt: skip


def latex_text(text: str) -> str:
    """Text with LaTeX's special characters spelled out."""
    return "".join(_LATEX.get(character, character) for character in text)


def to_html(table: Table) -> str:
    """A sortable table; a number links to the score rows it comes from."""
    names = map(html.escape, table.columns)
    heads = "".join(f'<th scope="col"><button type="button">{name}</button></th>' for name in names)
    rows = "\n".join("<tr>" + "".join(map(_html_cell, row)) + "</tr>" for row in table.rows)
    return (
        f'<div class="scroll"><table class="sortable" id="table-{html.escape(table.name)}">'
        f"<caption>{html.escape(table.caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody>"
        "</table></div>"
    )


def _html_cell(cell: TableCell) -> str:
    text = html.escape(cell.text)
    if cell.bold:
        text = f"<strong>{text}</strong>"
    if cell.entries:
        numbers = " ".join(str(entry.number) for entry in cell.entries)
        first = cell.entries[0].number
        text = f'<a href="#row-{first}" data-rows="{numbers}" title="{html.escape(_origin(cell.entries))}">{text}</a>'
    attributes = ' class="number"' if cell.sort is not None else ""
    value = "" if cell.sort is None else f' data-sort="{cell.sort!r}"'
    return f"<td{attributes}{value}>{text}</td>"


def _origin(entries: Sequence[Entry]) -> str:
    """One line: which rows, how many episodes, which code."""
    places: dict[str, list[int]] = {}
    for entry in entries:
        places.setdefault(entry.file, []).append(entry.line)
    where = "; ".join(f"{file} line {', '.join(map(str, lines))}" for file, lines in places.items())
    commits = ", ".join(sorted({entry.row.commit for entry in entries}))
    return f"{where} · {sum(entry.row.episodes for entry in entries):,} episodes · commit {commits}"
