"""A report on disk: report.html, tables/*.md, *.tex, *.html and figures/*.png, *.svg."""

import html
from collections.abc import Iterable, Sequence
from pathlib import Path

from expgen.errors import InputError
from expgen.provenance import commit
from expgen.report.page import to_page
from expgen.report.provenance import provenance_section
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section, Watchable
from expgen.report.sections import build_sections
from expgen.report.style import save_figure
from expgen.report.tables import to_html, to_latex, to_markdown

PAGE = "report.html"


def write_report(
    table: ScoreTable,
    out: Path,
    title: str = "Scores",
    others: Sequence[Section] = (),
    only: Iterable[str] | None = None,
    episodes: Sequence[Path] = (),
) -> Path:
    """Write everything below `out` and answer the page's path. `only` and `others` as in `build_sections`."""
    sections = build_sections(table, others, only)
    if episodes:
        films = tuple(Watchable(file, file.stem.replace("-", " ")) for file in episodes)
        sections.append(Section("episodes", "As played.", heading="Episodes to watch", watch=films))
    if table.entries:
        sections.append(provenance_section(table.entries))
    try:
        for folder in ("tables", "figures"):
            (out / folder).mkdir(parents=True, exist_ok=True)
        for section in sections:
            _write_parts(section, out)
        (out / PAGE).write_text(to_page(title, _summary(table), sections, out / "figures"), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}; accepted: a writable folder") from None
    return out / PAGE


def _write_parts(section: Section, out: Path) -> None:
    for table in section.tables:
        file = out / "tables" / table.name
        file.with_suffix(".md").write_text(to_markdown(table), encoding="utf-8")
        file.with_suffix(".tex").write_text(to_latex(table), encoding="utf-8")
        head = f'<!doctype html><meta charset="utf-8"><title>{html.escape(table.name)}</title>'
        file.with_suffix(".html").write_text(f"{head}\n{to_html(table)}\n", encoding="utf-8")
    for (_, figure), file in zip(section.figures, section.figure_files(out / "figures"), strict=True):
        save_figure(figure, file)


def _summary(table: ScoreTable) -> str:
    entries = table.entries
    if not entries:
        return f"Made by expgen {commit()}."
    files = {entry.file for entry in entries}
    episodes = sum(entry.row.episodes for entry in entries)
    return (
        f"{len(entries):,} score rows ({episodes:,} episodes) from {len(files)} file{'s' if len(files) > 1 else ''}; "
        f"constants `{table.constants}`; made by expgen {commit()}. Click a column's head to sort; click a number to "
        "see the rows behind it."
    )
