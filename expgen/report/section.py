"""Section: one table or figure of the paper as our scores have it, or something beside them worth showing."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from expgen.paper.exhibits import EXHIBITS
from expgen.report.tables import Table

NOTES: dict[str, str] = tomllib.loads(Path(__file__).with_name("assets").joinpath("notes.toml").read_text("utf-8"))
Figures = Sequence[tuple[str, Figure]]  # alternative text and figure


class Film(NamedTuple):
    """An episode or a picture that the page carries within."""

    caption: str
    kind: str  # as in `video/mp4`
    source: str  # a data: address; of an inspector's page its HTML


@dataclass(frozen=True)
class Section:
    """A heading, a few words and what there is to see."""

    name: str  # of an exhibit, or a word of our own
    note: str
    tables: Sequence[Table] = ()
    figures: Figures = ()  # their files are called after the section
    heading: str = ""  # where the paper has none
    watch: Sequence[Film] = ()
    points: Sequence[str] = ()  # a list of sentences

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to see."""
        return not (self.figures or self.points or self.watch or any(table.rows for table in self.tables))

    @property
    def title(self) -> str:
        """`Table 1: test scores, 16 games, …`."""
        return self.heading or f"{EXHIBITS[self.name].title}: {EXHIBITS[self.name].shows}"

    @property
    def short_title(self) -> str:
        """For a table of contents: `Table 1`."""
        return self.title.partition(":")[0]

    def named_figures(self) -> dict[str, tuple[str, Figure]]:
        """Its figures by what their files are called, without suffix: NAME, NAME-2, …"""
        return {f"{self.name}-{number}" if number > 1 else self.name: figure
                for number, figure in enumerate(self.figures, start=1)}  # fmt: skip


def sentence(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(number: int, word: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
