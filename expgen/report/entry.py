"""Entry: a score row with its file and line, the quantity it measures, and the method and run it belongs to."""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from expgen.errors import InputError
from expgen.evaluation.scores import Score, count_of, numbered_scores, read_settings
from expgen.exploration.rows import EXPLORATION_FILE, MEASURES, ExplorationRow, mean_of, read_exploration
from expgen.paper import numbers
from expgen.report.methods import RETURN, Method
from expgen.report.named_methods import METHODS_FILE, read_method_names


@dataclass(frozen=True)
class Entry:
    """A score row and where it was read; `row.mean_return` is the mean of `measure`, not always a return."""

    row: Score
    file: str
    line: int
    measure: str = RETURN
    number: int = 0  # position in the report's list of rows, from 1
    names: tuple[str, ...] = ()  # further methods that it counts for, from methods.csv

    @cached_property
    def _settings(self) -> dict[str, str]:
        return read_settings(self.row.settings)

    @property
    def method(self) -> Method:
        """The algorithm and the settings that define a variant of it."""
        return Method.of_row(self.row.algorithm, self.row.settings)

    @property
    def run(self) -> tuple[int, int]:
        """Seed and leader."""
        return self.row.seed, count_of(self._settings.get("leader", ""))

    @property
    def is_paper_game(self) -> bool:
        """Whether the game is one of the paper's sixteen ProcGen games."""
        return self.row.game in numbers.games() and self.row.env.partition(":")[0] in ("procgen", "envpool")

    @property
    def members(self) -> int:
        """The size of the complete ensemble; 0 if the row does not state it."""
        return count_of(self._settings.get("members", ""))


def read_entries(file: Path) -> list[Entry]:
    """Return the rows of a score file; for a scores.csv, also use exploration.csv and methods.csv in its folder."""
    entries = [Entry(row, str(file), line) for line, row in numbered_scores(file)]
    if file.name != "scores.csv":
        return entries
    names = read_method_names(file.with_name(METHODS_FILE), [(entry.row.game, entry.method) for entry in entries])
    entries = [dataclasses.replace(e, names=tuple(names.get((e.row.game, e.method), ()))) for e in entries]
    exploration = file.with_name(EXPLORATION_FILE)
    if exploration.exists():
        for line, row in read_exploration(exploration):
            entries += _exploration_entries(row, str(exploration), line)
    return entries


def _exploration_entries(row: ExplorationRow, file: str, line: int) -> list[Entry]:
    """Return one entry for each measure that the row has."""
    names = [field.name for field in dataclasses.fields(Score)]
    shared = {name: value for name, value in dataclasses.asdict(row).items() if name in names}
    shared |= {"std_return": math.nan, "solved_rate": math.nan}
    found = {measure: mean for measure in MEASURES if (mean := mean_of(row, measure)) is not None}
    return [
        Entry(Score(mean_return=mean.value, ci_low=mean.ci_low, ci_high=mean.ci_high, **shared), file, line, measure)
        for measure, mean in found.items()
    ]


def number_entries(entries: Iterable[Entry], sources: Iterable[Path]) -> list[Entry]:
    """Return the entries numbered from 1; raise an InputError that names `sources` if there are none."""
    numbered = [dataclasses.replace(entry, number=number) for number, entry in enumerate(entries, start=1)]
    if not numbered:
        raise InputError(f"no scores in {', '.join(map(str, sources))}")
    return numbered
