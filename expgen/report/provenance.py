"""The list of score rows behind a report, with the command, config, hardware and minutes of provenance.csv."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from expgen.evaluation.scores import TableFile
from expgen.exploration.rows import EXPLORATION_FILE
from expgen.report.entry import Entry
from expgen.report.lines import short_steps
from expgen.report.methods import RETURN
from expgen.report.section import NOTES, Section
from expgen.report.tables import Table, TableCell, interval_cell, number_cell

COLUMNS = (
    "row", "algorithm", "agent", "settings", "game", "seed", "split", "levels", "steps", "episodes", "mean",
    "95 % interval", "solved", "source",
)  # fmt: skip
MAX_LEVELS_LENGTH = 24  # characters; a longer list of levels is shown on demand


@dataclass(frozen=True)
class ProvenanceRow:
    """One row of provenance.csv: how a score row was made; unknown cells are empty."""

    row: int  # number of the row in the score file, from 1
    command: str
    config: str
    hardware: str
    minutes: str


FILE = TableFile(ProvenanceRow, "provenance")


def provenance_section(entries: Sequence[Entry]) -> Section:
    """Return the table of all score rows."""
    provenance = {file: read_provenance(Path(file)) for file in dict.fromkeys(entry.file for entry in entries)}
    table = Table("rows", "Every score row of this report.", COLUMNS)
    for entry in entries:
        row = entry.row
        settings = row.settings if entry.measure == RETURN else f"{row.settings} mean {entry.measure}".strip()
        levels = row.levels if len(row.levels) <= MAX_LEVELS_LENGTH else f"{row.levels.count(',') + 1} listed"
        found = provenance[entry.file].get(entry.line - 1)
        facts = {"steps": f"{row.env_steps:,}", "commit": row.commit, **(dataclasses.asdict(found) if found else {})}
        details = "; ".join(f"{name} {fact}" for name, fact in facts.items() if fact and name != "row")
        table.add(
            number_cell(entry.number, 0), row.algorithm, row.agent, settings, row.game, number_cell(row.seed, 0),
            row.split, TableCell(levels, more="" if levels == row.levels else row.levels),
            TableCell(short_steps(row.env_steps), row.env_steps), number_cell(row.episodes, 0),
            number_cell(row.mean_return, 3), interval_cell(row.ci_low, row.ci_high), number_cell(row.solved_rate, 3),
            TableCell(f"{Path(entry.file).name} line {entry.line}", more=f"{entry.file}; {details}"),
        )  # fmt: skip
    return Section("rows", NOTES["rows"], [table], heading="Score rows")


def provenance_file(scores: Path) -> Path:
    """Return `provenance.csv` for scores.csv, `exploration-provenance.csv` for exploration.csv, in the same folder."""
    return scores.with_name("provenance.csv" if scores.name == "scores.csv" else f"{scores.stem}-provenance.csv")


def read_provenance(scores: Path) -> dict[int, ProvenanceRow]:
    """Return the provenance of the rows of a file by row number; empty if the file has none."""
    file = provenance_file(scores)
    if scores.name not in ("scores.csv", EXPLORATION_FILE) or not file.exists():
        return {}
    return {row.row: row for _, row in FILE.numbered(file)}
