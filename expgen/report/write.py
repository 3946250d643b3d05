"""Write a report: report.html, tables/*.md, *.tex, *.csv, *.html and figures/*.png, *.svg.

The page contains its style, script, figures and media and makes no network requests.
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
from expgen.report.section import Media, Section, plural
from expgen.report.sections import build_sections
from expgen.report.style import figure_files, inline_svg
from expgen.report.tables import to_csv, to_latex, to_markdown

PAGE, TABLES = "report.html", "tables"
MEDIA_TYPES = {
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
    """Write all files below the folder `out`, or none if one of them fails, and return the path of the page.

    title: heading of the page. others, only, curves: see `build_sections`. episodes: videos, images and inspector pages
    to embed.
    """
    sections = build_sections(table, others, only, curves)
    if episodes:
        media = [_read_media(file) for file in episodes]
        sections.append(Section("episodes", "", heading="Episodes", media=media))
    if table.entries:
        sections.append(provenance_section(table.entries))
    files: dict[str, bytes] = {}
    for section in sections:
        for name, (_, figure) in section.named_figures().items():
            files |= {f"figures/{name}{ending}": content for ending, content in figure_files(figure).items()}
        for shown in section.tables:
            page = render("report/single_table.html", title=shown.caption, table=shown)
            texts = {".md": to_markdown(shown), ".tex": to_latex(shown), ".csv": to_csv(shown), ".html": page}
            files |= {f"{TABLES}/{shown.name}{ending}": text.encode() for ending, text in texts.items()}
    svgs = {Path(name).stem: Markup(inline_svg(files[name])) for name in files if name.endswith(".svg")}
    page = render("report/page.html", title=title, summary=_summary(table), sections=sections, svgs=svgs)
    files[PAGE] = page.encode()
    try:
        _write_all_or_nothing(out, files)
    except OSError as error:
        raise write_error(Path(f"--out {out}"), error) from None
    return out / PAGE


def _write_all_or_nothing(out: Path, files: Mapping[str, bytes]) -> None:
    """Write `files` to a temporary folder and move them to `out` once all are written."""
    folder = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    with tempfile.TemporaryDirectory(prefix=".report-", dir=folder) as temporary:
        for name, content in files.items():
            (Path(temporary) / name).parent.mkdir(exist_ok=True)
            (Path(temporary) / name).write_bytes(content)
        for name in files:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(temporary) / name, out / name)


def _summary(table: ScoreTable) -> str:
    entries = table.entries
    if not entries:
        return f"Made by expgen {commit()}."
    episodes = sum(entry.row.episodes for entry in entries)
    files = plural(len({entry.file for entry in entries}), "file")
    return (
        f"{plural(len(entries), 'score row')} ({plural(episodes, 'episode')}) from {files}; constants "
        f"`{table.constants}`; made by expgen {commit()}. Click a column header to sort; click a number to see its "
        "score rows."
    )


def _read_media(file: Path) -> Media:
    """Read a video, image or inspector page for embedding in the report."""
    suffix = file.suffix.lower()
    if suffix not in MEDIA_TYPES:
        raise InputError(f"--episodes is {str(file)!r}; accepted: files that end in {', '.join(MEDIA_TYPES)}")
    try:
        content = read_bytes(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    if suffix == ".html":
        source = content.decode("utf-8", errors="replace")
    else:
        source = f"data:{MEDIA_TYPES[suffix]};base64,{base64.b64encode(content).decode()}"
    return Media(file.stem.replace("-", " "), MEDIA_TYPES[suffix], source)
