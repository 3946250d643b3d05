"""A report on disk: report.html, tables/*.md, *.tex, *.csv, *.html and figures/*.png, *.svg."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from expgen.errors import InputError
from expgen.html import render
from expgen.provenance import commit
from expgen.report.curves import Curve
from expgen.report.page import to_page
from expgen.report.provenance import provenance_section
from expgen.report.score_table import ScoreTable
from expgen.report.section import Section, Watchable, counted
from expgen.report.sections import build_sections
from expgen.report.style import figure_files, svg_for_page
from expgen.report.tables import to_csv, to_latex, to_markdown

PAGE = "report.html"


def write_report(
    table: ScoreTable,
    out: Path,
    title: str = "Scores",
    others: Sequence[Section] = (),
    only: Iterable[str] | None = None,
    episodes: Sequence[Path] = (),
    curves: Sequence[Curve] = (),
) -> Path:
    """Write everything below the folder `out` and answer the page's path; nothing is written where a part fails.

    `title` is the page's heading; `others`, `only` and `curves` are those of `build_sections`; `episodes` are films and
    inspector pages to carry.
    """
    sections = build_sections(table, others, only, curves)
    if episodes:
        films = tuple(Watchable(file, file.stem.replace("-", " ")) for file in episodes)
        sections.append(Section("episodes", "As played.", heading="Episodes to watch", watch=films))
    if table.entries:
        sections.append(provenance_section(table.entries))
    files: dict[str, bytes] = {}
    for section in sections:
        for (_, figure), name in zip(section.figures, section.figure_names(), strict=True):
            files |= {f"figures/{name}{ending}": content for ending, content in figure_files(figure).items()}
        for part in section.tables:
            alone = render("report/alone.html", title=part.caption, table=part)
            texts = {".md": to_markdown(part), ".tex": to_latex(part), ".csv": to_csv(part), ".html": alone}
            files |= {f"tables/{part.name}{ending}": text.encode() for ending, text in texts.items()}
    drawings = {Path(name).stem: svg_for_page(files[name]) for name in files if name.endswith(".svg")}
    files[PAGE] = to_page(title, _summary(table), sections, drawings).encode()
    try:
        for folder in ("tables", "figures"):
            (out / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out / name).write_bytes(content)
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}; accepted: a writable folder") from None
    return out / PAGE


def _summary(table: ScoreTable) -> str:
    entries = table.entries
    if not entries:
        return f"Made by expgen {commit()}."
    episodes = sum(entry.row.episodes for entry in entries)
    read = counted(len({entry.file for entry in entries}), "file")
    return (
        f"{counted(len(entries), 'score row')} ({counted(episodes, 'episode')}) from {read}; constants "
        f"`{table.constants}`; made by expgen {commit()}. Click a column's head to sort; click a number to see the "
        "rows behind it."
    )
