"""Section: a heading of the report with its note, tables, figures and media."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from expgen.paper.exhibits import EXHIBITS
from expgen.report.tables import Table

NOTES: dict[str, str] = tomllib.loads(Path(__file__).with_name("assets").joinpath("notes.toml").read_text("utf-8"))


class Media(NamedTuple):
    """A video, image or HTML page embedded in the report."""

    caption: str
    kind: str  # MIME type, such as `video/mp4`
    source: str  # a data: URL, or the HTML of an inspector page


@dataclass(frozen=True)
class Section:
    """One section of the report."""

    name: str  # of an exhibit of the paper, or a name of our own
    note: str
    tables: Sequence[Table] = ()
    figures: Sequence[tuple[str, Figure]] = ()  # alternative text and figure; files are named after the section
    heading: str = ""  # required unless `name` is an exhibit
    media: Sequence[Media] = ()
    points: Sequence[str] = ()  # a bulleted list

    @property
    def is_empty(self) -> bool:
        """Whether the section has neither figures nor points, media or table rows."""
        return not (self.figures or self.points or self.media or any(table.rows for table in self.tables))

    @property
    def title(self) -> str:
        """The heading, such as `Table 1: test scores, 16 games, …`."""
        return self.heading or f"{EXHIBITS[self.name].title}: {EXHIBITS[self.name].shows}"

    @property
    def short_title(self) -> str:
        """The title up to its colon, for the table of contents: `Table 1`."""
        return self.title.partition(":")[0]

    def named_figures(self) -> dict[str, tuple[str, Figure]]:
        """Return the figures by file name without suffix: NAME, NAME-2, …"""
        return {f"{self.name}-{number}" if number > 1 else self.name: figure
                for number, figure in enumerate(self.figures, start=1)}  # fmt: skip


def join_words(words: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def plural(number: int, word: str) -> str:
    """Return `1 run`, `3 runs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
