"""A report on disk: report.html, tables/*.md, *.tex, *.csv, *.html and figures/*.png, *.svg.

The page has its style, script, figures and films inside; it asks nothing of any network.
"""

import base64
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from expgen.errors import InputError, write_error
from expgen.files import read_bytes
from expgen.html import render
from expgen.provenance import commit
from expgen.report.curves import Curve
from expgen.report.provenance import provenance_section
from expgen.report.score_table import ScoreTable
from expgen.report.section import Film, Section, counted
from expgen.report.sections import build_sections
from expgen.report.style import figure_files, svg_for_page
from expgen.report.tables import to_csv, to_latex, to_markdown

PAGE = "report.html"
KINDS = {
    ".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif", ".png": "image/png", ".jpg": "image/jpeg",
    ".svg": "image/svg+xml", ".html": "text/html",
}  # fmt: skip


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
        films = [_read_film(file) for file in episodes]
        sections.append(Section("episodes", "As played.", heading="Episodes to watch", watch=films))
    if table.entries:
        sections.append(provenance_section(table.entries))
    files: dict[str, bytes] = {}
    for section in sections:
        for name, (_, figure) in section.named_figures().items():
            files |= {f"figures/{name}{ending}": content for ending, content in figure_files(figure).items()}
        for part in section.tables:
            alone = render("report/alone.html", title=part.caption, table=part)
            texts = {".md": to_markdown(part), ".tex": to_latex(part), ".csv": to_csv(part), ".html": alone}
            files |= {f"tables/{part.name}{ending}": text.encode() for ending, text in texts.items()}
    drawings = {Path(name).stem: Markup(svg_for_page(files[name])) for name in files if name.endswith(".svg")}
    page = render("report/page.html", title=title, summary=_summary(table), sections=sections, drawings=drawings)
    files[PAGE] = page.encode()
    try:
        _write_together(out, files)
    except OSError as error:
        raise write_error(Path(f"--out {out}"), error) from None
    return out / PAGE


def _write_together(out: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` beside the folder `out`, then move them there: one that cannot be written leaves none behind."""
    folder = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    with tempfile.TemporaryDirectory(prefix=".report-", dir=folder) as beside:
        for name, content in files.items():
            (Path(beside) / name).parent.mkdir(exist_ok=True)
            (Path(beside) / name).write_bytes(content)
        for name in files:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(beside) / name, out / name)


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


def _read_film(file: Path) -> Film:
    """A film, a picture or an inspector's page, to carry within the report."""
    suffix = file.suffix.lower()
    if suffix not in KINDS:
        raise InputError(f"--episodes {file} ends in {suffix or 'nothing'}; accepted: {', '.join(KINDS)}")
    try:
        content = read_bytes(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    if suffix == ".html":
        source = content.decode("utf-8", errors="replace")
    else:
        source = f"data:{KINDS[suffix]};base64,{base64.b64encode(content).decode()}"
    return Film(file.stem.replace("-", " "), KINDS[suffix], source)
