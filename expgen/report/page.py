"""The page: one HTML file with its style, script, figures and films inside; it asks nothing of any network."""

import base64
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from expgen.errors import InputError
from expgen.html import render
from expgen.report.section import Section, Watchable

FILMS = {".mp4": "video/mp4", ".webm": "video/webm"}
PICTURES = {".gif": "image/gif", ".png": "image/png", ".jpg": "image/jpeg", ".svg": "image/svg+xml"}
PAGES = (".html",)


def to_page(title: str, summary: str, sections: Sequence[Section], drawings: Mapping[str, str]) -> str:
    """The whole document; `drawings` are the SVG elements of the sections' figures, by name."""
    shown = [
        {
            "section": section,
            "figures": [
                (words, Markup(drawings[name]))
                for (words, _), name in zip(section.figures, section.figure_names(), strict=True)
            ],
            "films": [_watch(film) for film in section.watch],
        }
        for section in sections
    ]
    return render("report/page.html", title=title, summary=summary, sections=shown)


def _watch(watchable: Watchable) -> dict[str, str]:
    """What the template needs of a film, a picture or an inspector's page, carried inside this one."""
    file, kind = watchable.file, watchable.file.suffix.lower()
    if kind not in (*FILMS, *PICTURES, *PAGES):
        accepted = ", ".join((*FILMS, *PICTURES, *PAGES))
        raise InputError(f"--episodes {file} ends in {kind or 'nothing'}; accepted: {accepted}")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    if kind in PAGES:
        return {"kind": "page", "caption": watchable.caption, "source": content.decode("utf-8", errors="replace")}
    address = f"data:{(FILMS | PICTURES)[kind]};base64,{base64.b64encode(content).decode()}"
    return {"kind": "film" if kind in FILMS else "picture", "caption": watchable.caption, "source": address}
