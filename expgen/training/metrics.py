"""metrics.csv: one row per learner and update.

A damaged file does not stop a run: a copy is kept, the valid rows stay, and a warning is printed.
"""

import csv
import io
import os
import re
from collections.abc import Mapping
from pathlib import Path

from expgen.errors import write_error
from expgen.files import open_regular, write_atomic
from expgen.text import notify

LEADING = ("learner", "env_steps", "seconds")
TAIL_BYTES = 65_536  # some hundred rows
MAX_HEADER_BYTES = 65_536
STEPS = re.compile(r"[0-9]{1,15}")  # below 2⁵³, as in a checkpoint


class MetricsFile:
    """A CSV file to which rows are appended, and columns when a new metric appears."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns = list(LEADING)
        if path.exists():
            with open_regular(path) as file:
                header = parse_cells(file.readline(MAX_HEADER_BYTES).rstrip(b"\n"))
            if tuple(header[: len(LEADING)]) == LEADING and len(set(header)) == len(header):
                self.columns = header

    def append(self, learner: str, row: Mapping[str, float]) -> None:
        """Append one row and flush it to the operating system."""
        new = [name for name in row if name not in self.columns]
        if new or not self.path.exists():
            rows = self.rows()
            self.columns += new
            self.rewrite(rows)
        line = io.StringIO()
        self._writer(line).writerow({"learner": learner, **_format_cells(row)})
        try:
            with open(self.path, "a", newline="") as file:
                file.write(line.getvalue())
        except OSError as error:
            raise write_error(self.path, error) from None

    def rows(self) -> list[dict[str, str]]:
        """Return all valid rows, without lines that are damaged or cut short by a crash."""
        return self._parse(self.lines()[1:])

    def latest(self) -> dict[str, dict[str, float]]:
        """Return the last row of each learner among the last TAIL_BYTES, without reading the rest."""
        if not self.path.is_file():
            return {}
        with open_regular(self.path) as file:
            header_end = len(file.readline())
            tail = file.seek(0, os.SEEK_END) - TAIL_BYTES
            file.seek(max(header_end, tail))
            if tail > header_end:
                file.readline()  # skip the rest of a line
            lines = file.read().split(b"\n")[:-1]
        latest = {}
        for row in self._parse(lines):
            learner = row.pop("learner")
            latest[learner] = {name: float(cell) for name, cell in row.items() if cell}
        return latest

    def lines(self) -> list[bytes]:
        """Return all complete lines; none if the file is missing or not a regular file."""
        return self.path.read_bytes().split(b"\n")[:-1] if self.path.is_file() else []

    def drop_rows_after(self, learner: str, env_steps: int) -> None:
        """Drop the rows of `learner` after the checkpoint it resumes from: it will report them again."""
        if self.path.is_file():
            rows = self.rows()
            self.rewrite([r for r in rows if r["learner"] != learner or int(r["env_steps"]) <= env_steps])

    def complete_row(self, learner: str, env_steps: int, more: Mapping[str, float]) -> bool:
        """Add columns to an existing row, such as scores that arrive late; return whether the row exists."""
        rows = self.rows()
        found = [r for r in rows if r["learner"] == learner and int(r["env_steps"]) == env_steps]
        if not found:
            return False
        self.columns += [name for name in more if name not in self.columns]
        found[-1] |= _format_cells(more)
        self.rewrite(rows)
        return True

    def rewrite(self, rows: list[dict[str, str]]) -> None:
        """Replace the file's content by `rows`."""
        text = io.StringIO()
        writer = self._writer(text)
        writer.writeheader()
        writer.writerows(rows)
        write_atomic(self.path, text.getvalue().encode(), new_folders=0)

    def _parse(self, lines: list[bytes]) -> list[dict[str, str]]:
        rows = (parse_row(self.columns, line) for line in lines)
        return [row for row in rows if row is not None]

    def _writer(self, file: io.StringIO) -> "csv.DictWriter[str]":
        return csv.DictWriter(file, self.columns, restval="", lineterminator="\n")


def parse_cells(line: bytes) -> list[str]:
    """Return the cells of a CSV line; none if the line is damaged."""
    try:
        (cells,) = csv.reader([line.decode()])
        return cells
    except (ValueError, csv.Error):
        return []


def parse_row(columns: list[str], line: bytes) -> dict[str, str] | None:
    """Return the cells by column; None if the line is damaged."""
    cells = parse_cells(line)
    if len(cells) != len(columns) or not (cells[0] and STEPS.fullmatch(cells[1])):
        return None
    try:
        for cell in cells[1:]:
            float(cell or 0)
    except ValueError:
        return None
    return dict(zip(columns, cells))


def _format_cells(row: Mapping[str, float]) -> dict[str, str]:
    return {name: str(int(x)) if float(x).is_integer() else f"{x:.6g}" for name, x in row.items()}


def repair_metrics(path: Path) -> None:
    """Make `path` a file that a run can continue; if it is damaged, keep it as `path`.damaged-N and print a warning.

    An incomplete last line is not damage: a killed process leaves one.
    """
    number = 1
    while os.path.lexists(backup := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    try:
        damage = _find_damage(path)
        if damage and path.is_file():
            write_atomic(backup, path.read_bytes())
            metrics = MetricsFile(path)
            metrics.rewrite(metrics.rows())
        elif damage:
            os.replace(path, backup)
    except OSError as error:
        damage = str(error.strerror)
        try:
            os.replace(path, backup)
        except OSError as refused:
            raise write_error(path, refused) from None
    if damage:
        line = f"expgen: {path}: {damage}; the damaged file is now {backup.name}, training continues without that part"
        notify(line)


def _find_damage(path: Path) -> str:
    """Return what is wrong with the file; empty if nothing is."""
    if not path.is_file():
        return "not a regular file" if os.path.lexists(path) else ""
    if not path.stat().st_size:
        return ""
    metrics = MetricsFile(path)
    header, *others = metrics.lines() or [b""]
    if len(header) >= MAX_HEADER_BYTES or parse_cells(header) != metrics.columns:
        return "no header"
    num_bad = len(others) - len(metrics.rows())
    return f"{num_bad} damaged lines" if num_bad else ""
