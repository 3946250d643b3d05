"""The page: one HTML file with its style, script, figures and films inside; it asks nothing of any network."""

import base64
import html
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from expgen.errors import InputError
from expgen.report.section import Section, Watchable
from expgen.report.tables import to_html

FILMS = {".mp4": "video/mp4", ".webm": "video/webm"}
PICTURES = {".gif": "image/gif", ".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml"}
PAGES = (".html",)


def to_page(title: str, summary: str, sections: Sequence[Section], figures: Path) -> str:
    """The whole document; the SVG files of its figures are in the folder `figures`."""
    links = "".join(f'<a href="#{html.escape(s.name)}">{html.escape(_short(s))}</a>' for s in sections)
    body = "\n".join(_section(section, figures) for section in sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; media-src data:; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-src data: blob: 'self'">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>{_resource("page.css")}</style>
</head>
<body>
<header><h1>{html.escape(title)}</h1><p class="soft">{_marked(summary)}</p><nav>{links}</nav></header>
<main>
{body}
</main>
<footer><p class="soft">Figures and tables are also files beside this page: figures/*.png, *.svg; tables/*.md, *.tex,
*.html.</p></footer>
<script>{_resource("page.js")}</script>
</body>
</html>
"""


def _section(section: Section, folder: Path) -> str:
    files = section.figure_files(folder)
    figures = "".join(
        f'<figure><img alt="{html.escape(words)}" src="{_embedded(file.with_suffix(".svg"))}"></figure>'
        for (words, _), file in zip(section.figures, files, strict=True)
    )
    films = "".join(map(_watch, section.watch))
    tables = "".join(map(to_html, section.tables))
    search = '<input id="filter" type="search" placeholder="filter rows" aria-label="filter rows">'
    return (
        f'<section id="{html.escape(section.name)}"><h2>{html.escape(section.title)}</h2>'
        f"<p>{_marked(section.note)}</p>{films}{figures}{search if section.name == 'rows' else ''}{tables}</section>"
    )


def _watch(watchable: Watchable) -> str:
    """A film, a picture or an inspector's page, carried inside this one."""
    file, caption = watchable.file, html.escape(watchable.caption)
    kind = file.suffix.lower()
    if kind in FILMS:
        shown = f'<video controls loop src="{_embedded(file)}"></video>'
    elif kind in PICTURES:
        shown = f'<img class="pixels" alt="{caption}" src="{_embedded(file)}">'
    elif kind in PAGES:
        page = html.escape(_read(file).decode("utf-8", errors="replace"))
        shown = f'<iframe title="{caption}" loading="lazy" sandbox="allow-scripts" srcdoc="{page}"></iframe>'
    else:
        accepted = ", ".join((*FILMS, *PICTURES, *PAGES))
        raise InputError(f"--episodes {file} ends in {kind or 'nothing'}; accepted: {accepted}")
    return f"<figure>{shown}<figcaption>{caption}</figcaption></figure>"


def _embedded(file: Path) -> str:
    """The file as a data: address."""
    kind = (FILMS | PICTURES)[file.suffix.lower()]
    return f"data:{kind};base64,{base64.b64encode(_read(file)).decode()}"


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None


def _marked(text: str) -> str:
    """Escaped, with `words` as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _short(section: Section) -> str:
    return section.title.partition(":")[0]


def _resource(name: str) -> str:
    return (resources.files("expgen.report") / "assets" / name).read_text(encoding="utf-8")
