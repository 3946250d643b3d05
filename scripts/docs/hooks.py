"""MkDocs hooks: generated pages, repository files that pages link to, tables for narrow screens."""

import html
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from notebook import as_markdown
from reference import pages

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(\]\(|(?:src|href)=\")([^)#\s\":]+)(?=[)#\"])")  # relative ones, of Markdown and of HTML
TEXT = {".csv", ".json", ".gif", ".png", ".svg", ".html"}  # copied unchanged; other files become pages with their text


def on_files(files: Files, config: Any) -> Files:
    """Add generated pages and linked files outside docs/."""
    for uri, text in pages().items():
        files.append(File.generated(config, uri, content=text))
    files.append(File.generated(config, "tutorial.md", content=as_markdown(ROOT / "docs" / "tutorial.ipynb")))
    waiting = [(f"docs/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    waiting.append(("README.md", "[](CHANGELOG.md) [](CONTRIBUTING.md) [](results/README.md)"))
    while waiting:
        page, text = waiting.pop()
        for _, link in LINK.findall(text):
            path = _in_repository(page, link)
            uri = _in_site(path)
            if path.startswith("docs/") or uri in files.src_uris or not (ROOT / path).is_file():
                continue
            if uri == f"repository/{path}" and not path.endswith(".md"):
                files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
                continue
            source = (ROOT / path).read_text()
            content = source if path.endswith(".md") else f"# {path}\n\n````python\n{source}\n````\n"
            files.append(File.generated(config, uri, content=content))
            if path.endswith(".md"):
                waiting.append((path, source))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links of the repository to links of the site."""
    source = page.file.src_uri
    here = source.removeprefix("repository/") if source.startswith("repository/") else f"docs/{source}"

    def moved(match: re.Match[str]) -> str:
        target = _in_site(_in_repository(here, match[2]))
        return match[1] + posixpath.relpath(target, posixpath.dirname(source) or ".")

    return LINK.sub(moved, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Add the column's name to every table cell, for narrow screens; keep flags in one line."""
    content = re.sub(r"<code>(--[\w-]{1,16})</code>", r'<code class="flag">\1</code>', content)
    return re.sub(r"<table>.*?</table>", lambda match: _named(match[0]), content, flags=re.DOTALL)


def _named(table: str) -> str:
    headings = re.findall(r"<th[^>]*>(.*?)</th>", table, re.DOTALL)
    names = [html.escape(html.unescape(re.sub(r"<.*?>", "", name).strip())) for name in headings]

    def row(match: re.Match[str]) -> str:
        columns = iter(names)
        return re.sub(r"<td", lambda _: f'<td data-column="{next(columns, "")}"', match[0])

    return re.sub(r"<tr>.*?</tr>", row, table, flags=re.DOTALL)


def _in_repository(page: str, link: str) -> str:
    """Resolve a link of a page; both are paths from the repository's root."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def _in_site(path: str) -> str:
    """Return the path of a repository file from the site's root."""
    if path == "docs/tutorial.ipynb":
        return "tutorial.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.endswith(".md") or Path(path).suffix in TEXT:
        return f"repository/{path}"
    return f"repository/{path}.md"
