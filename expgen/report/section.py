"""Section: one table or figure of the paper as our scores have it, or something beside them worth showing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from expgen.paper.exhibits import EXHIBITS
from expgen.report.tables import Table


@dataclass(frozen=True)
class Section:
    """A heading, a few words and what there is to see."""

    name: str  # of an exhibit, or a word of our own
    note: str
    tables: tuple[Table, ...] = ()
    figures: tuple[tuple[str, Figure], ...] = ()  # alternative text and figure; files are called after the section
    heading: str = ""  # where the paper has none
    watch: tuple["Watchable", ...] = ()
    points: tuple[str, ...] = ()  # a list of sentences

    @property
    def title(self) -> str:
        """`Table 1: test scores, 16 games, …`."""
        return self.heading or f"{EXHIBITS[self.name].title}: {EXHIBITS[self.name].shows}"

    @property
    def short_title(self) -> str:
        """For a table of contents: `Table 1`."""
        return self.title.partition(":")[0]

    def figure_names(self) -> list[str]:
        """What its figures' files are called, without suffix: NAME, NAME-2, …"""
        return [self.name if not index else f"{self.name}-{index + 1}" for index in range(len(self.figures))]


@dataclass(frozen=True)
class Watchable:
    """An episode or a picture that the page carries within: .mp4, .gif, .png, or .html (an inspector)."""

    file: Path
    caption: str


def sentence(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def counted(number: int, word: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
