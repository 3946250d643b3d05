"""Entry: a score row, where it was read, and what its agent says of method, measure and run."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from expgen.errors import InputError
from expgen.evaluation.scores import Score, numbered_scores
from expgen.paper import numbers
from expgen.report.methods import Method, read_agent


@dataclass(frozen=True)
class Entry:
    """A score row and where it was read."""

    row: Score
    file: str
    line: int
    number: int  # in the report's list of rows, from 1

    @property
    def method(self) -> Method:
        return Method(self.row.algorithm, read_agent(self.row.agent).settings)

    @property
    def measure(self) -> str:
        return read_agent(self.row.agent).measure

    @property
    def run(self) -> tuple[int, int]:
        """Seed and leader."""
        return self.row.seed, read_agent(self.row.agent).leader

    @property
    def is_of_paper(self) -> bool:
        """Whether it is of one of the paper's sixteen games of ProcGen."""
        return self.row.game in numbers.games() and self.row.env.partition(":")[0] in ("procgen", "envpool")

    @property
    def members(self) -> int:
        """Of a whole ensemble; 0 where its row does not say."""
        return read_agent(self.row.agent).members


def rows_of(file: Path) -> list[tuple[Score, str, int]]:
    """The rows of a score file, each with its file and line."""
    return [(row, str(file), line) for line, row in numbered_scores(file)]


def as_entries(rows: Iterable[tuple[Score, str, int]], asked: Iterable[Path]) -> list[Entry]:
    """Rows numbered through; an InputError that names what was `asked` where there is none."""
    entries = [Entry(row, file, line, number) for number, (row, file, line) in enumerate(rows, start=1)]
    if not entries:
        raise InputError(f"no scores in {', '.join(map(str, asked))}; accepted: score files with at least one row")
    return entries
