"""metrics.csv: one row per learner and update, gathered once per rollout.

A damaged file never stops a run: what is damaged is set aside, the good rows stay, and a line says so.
"""

import csv
import io
import itertools
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from expgen.errors import write_error
from expgen.files import open_regular, write_atomic

LEADING = ("learner", "env_steps", "seconds")
TAIL_BYTES = 65_536  # some hundred rows
STEPS = re.compile(r"[0-9]{1,15}")  # below 2⁵³, as a checkpoint's
HEADER_BYTES = 65_536  # of the names of columns; a longer line is none of ours


class MetricsFile:
    """A CSV that grows rows, and columns when a new metric appears."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns = list(LEADING)
        if path.exists():
            with open_regular(path) as file:
                header = cells_of(file.readline(HEADER_BYTES).rstrip(b"\n")) or []
            if tuple(header[: len(LEADING)]) == LEADING and len(set(header)) == len(header):
                self.columns = header

    def append(self, learner: str, row: Mapping[str, float]) -> None:
        """Add one row; it is on its way to the disk when this returns."""
        new = [name for name in row if name not in self.columns]
        if new or not self.path.exists():
            rows = self.rows()
            self.columns += new
            self.rewrite(rows)
        line = io.StringIO()
        self._writer(line).writerow({"learner": learner, **{name: _short(value) for name, value in row.items()}})
        try:
            with open(self.path, "a", newline="") as file:
                file.write(line.getvalue())
        except OSError as error:
            raise write_error(self.path, error) from None

    def rows(self) -> list[dict[str, str]]:
        """Every good row so far; a line that a crash cut short, or that is damaged, does not count."""
        rows = (row_of(self.columns, line) for line in self.lines()[1:])
        return [row for row in rows if row is not None]

    def latest(self) -> dict[str, dict[str, float]]:
        """The last row of each learner among the last TAIL_BYTES, without reading the rest."""
        if not self.path.is_file():
            return {}
        with open_regular(self.path) as file:
            begin = len(file.readline())
            tail = file.seek(0, os.SEEK_END) - TAIL_BYTES
            file.seek(max(begin, tail))
            if tail > begin:
                file.readline()  # the rest of a line
            lines = file.read().split(b"\n")[:-1]
        rows = (row_of(self.columns, line) for line in lines)
        return {
            row["learner"]: {name: float(cell) for name, cell in row.items() if name != "learner" and cell}
            for row in rows
            if row is not None
        }

    def lines(self) -> list[bytes]:
        """All that end; none of a file that is not there or is no regular file."""
        return self.path.read_bytes().split(b"\n")[:-1] if self.path.is_file() else []

    def drop_rows_after(self, learner: str, env_steps: int) -> None:
        """Drop what `learner` reported past the checkpoint it resumes from: it will report it again."""
        if self.path.is_file():
            rows = self.rows()
            self.rewrite([r for r in rows if r["learner"] != learner or int(r["env_steps"]) <= env_steps])

    def complete_row(self, learner: str, env_steps: int, more: Mapping[str, float]) -> bool:
        """Add columns to a row that is there already, for values that took longer; whether it is there."""
        rows = self.rows()
        found = [r for r in rows if r["learner"] == learner and int(r["env_steps"]) == env_steps]
        if not found:
            return False
        self.columns += [name for name in more if name not in self.columns]
        found[-1] |= {name: _short(value) for name, value in more.items()}
        self.rewrite(rows)
        return True

    def rewrite(self, rows: list[dict[str, str]]) -> None:
        """Replace all rows."""
        text = io.StringIO()
        writer = self._writer(text)
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(self.path, text.getvalue().encode(), new_folders=0)

    def _writer(self, file: io.StringIO) -> "csv.DictWriter[str]":
        return csv.DictWriter(file, self.columns, restval="", lineterminator="\n")


def cells_of(line: bytes) -> list[str] | None:
    """None if the line is no text of a CSV."""
    try:
        (cells,) = csv.reader([line.decode()])
        return cells
    except (UnicodeDecodeError, ValueError, csv.Error):
        return None


def row_of(columns: list[str], line: bytes) -> dict[str, str] | None:
    """Cells by column; None if the line is damaged."""
    cells = cells_of(line)
    if cells is None or len(cells) != len(columns) or not (cells[0] and STEPS.fullmatch(cells[1])):
        return None
    try:
        [float(cell) for cell in cells[1:] if cell]
    except ValueError:
        return None
    return dict(zip(columns, cells, strict=True))


def _short(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"


def repair_metrics(path: Path) -> None:
    """Make the metrics file `path` one that a process can continue; if it is damaged it is kept as `path`.damaged-N.

    A last line without an end is not damage: a process that is killed leaves one.
    """
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    try:
        damage = _damage(path)
        if damage and path.is_file():
            metrics = MetricsFile(path)
            write_atomic(aside, path.read_bytes())
            metrics.rewrite(metrics.rows())
        elif damage:
            os.replace(path, aside)
    except OSError as error:
        damage = str(error.strerror)
        try:
            os.replace(path, aside)
        except OSError as refused:
            raise write_error(path, refused) from None
    if damage:
        line = f"expgen: {path}: {damage}; the damaged file is now {aside.name}, training continues without that part"
        print(line, file=sys.stderr, flush=True)


def _damage(path: Path) -> str:
    """What is wrong with the file, in words; empty if nothing is."""
    if not path.is_file():
        return "not a regular file" if os.path.lexists(path) else ""
    metrics = MetricsFile(path)
    header, *others = metrics.lines() or [b""]
    if not path.stat().st_size:
        return ""
    if len(header) >= HEADER_BYTES or cells_of(header) != metrics.columns:
        return "no header"
    num_bad = sum(row_of(metrics.columns, line) is None for line in others)
    return f"{num_bad} damaged lines" if num_bad else ""
