"""Entry: a row that was read, where, what it measures, and what it says of method and run."""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from expgen.errors import InputError
from expgen.evaluation.scores import ASIDES, Score, numbered_scores
from expgen.exploration.rows import EXPLORATION_FILE, MEASURES, ExplorationRow, mean_of, read_exploration
from expgen.paper import numbers
from expgen.report.methods import RETURN, Method, count_of, read_settings


@dataclass(frozen=True)
class Entry:
    """A row and where it was read. What was measured stands in `mean_return`, the return or what `measure` says."""

    row: Score
    file: str
    line: int
    measure: str = RETURN
    number: int = 0  # in the report's list of rows, from 1

    @cached_property
    def _settings(self) -> dict[str, str]:
        return read_settings(self.row.settings)

    @property
    def method(self) -> Method:
        """Leaders are runs and no method of their own, and how many members there are says more of one method."""
        settings = {name: value for name, value in self._settings.items() if name not in ("leader", *ASIDES)}
        return Method(self.row.algorithm, tuple(sorted(settings.items())))

    @property
    def run(self) -> tuple[int, int]:
        """Seed and leader."""
        return self.row.seed, count_of(self._settings.get("leader", ""))

    @property
    def is_of_paper(self) -> bool:
        """Whether it is of one of the paper's sixteen games of ProcGen."""
        return self.row.game in numbers.games() and self.row.env.partition(":")[0] in ("procgen", "envpool")

    @property
    def members(self) -> int:
        """Of a whole ensemble; 0 where its row does not say."""
        return count_of(self._settings.get("members", ""))


def rows_of(file: Path) -> list[Entry]:
    """The rows of a score file, and those of exploration.csv beside a file called scores.csv."""
    rows = [Entry(row, str(file), line) for line, row in numbered_scores(file)]
    beside = file.with_name(EXPLORATION_FILE)
    if file.name != "scores.csv" or not beside.exists():
        return rows
    return rows + [one for line, row in read_exploration(beside) for one in _measures(row, str(beside), line)]


def _measures(row: ExplorationRow, file: str, line: int) -> list[Entry]:
    """One entry for each measure that was taken."""
    names = [field.name for field in dataclasses.fields(Score)]
    shared = {name: value for name, value in dataclasses.asdict(row).items() if name in names}
    shared |= {"std_return": math.nan, "solved_rate": math.nan}
    found = {measure: mean for measure in MEASURES if (mean := mean_of(row, measure)) is not None}
    return [
        Entry(Score(mean_return=mean.value, ci_low=mean.ci_low, ci_high=mean.ci_high, **shared), file, line, measure)
        for measure, mean in found.items()
    ]


def as_entries(rows: Iterable[Entry], asked: Iterable[Path]) -> list[Entry]:
    """Rows numbered through; an InputError that names what was `asked` where there is none."""
    entries = [dataclasses.replace(row, number=number) for number, row in enumerate(rows, start=1)]
    if not entries:
        raise InputError(f"no scores in {', '.join(map(str, asked))}; accepted: score files with at least one row")
    return entries
