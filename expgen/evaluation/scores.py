"""scores.csv: one row per agent, split and evaluation. Reports read these rows and nothing else."""

import contextlib
import csv
import dataclasses
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args, get_type_hints

from expgen.errors import InputError, unwritable

Split = Literal["train", "test"]


@dataclass(frozen=True)
class Score:
    """One row; the columns of `scores.csv` in their order."""

    algorithm: str
    game: str
    env: str
    seed: int
    split: Split
    levels: str
    env_steps: int
    episodes: int
    mean_return: float
    std_return: float
    solved_rate: float
    ci_low: float
    ci_high: float
    agent: str
    commit: str


COLUMNS = tuple(field.name for field in dataclasses.fields(Score))
ASIDES = ("members", "tuned")  # settings in `agent` that say more of it and make no variant


def without_asides(agent: str) -> str:
    """`agent` as the variant that it is: `expgen leader=3` for `expgen leader=3 members=10`."""
    return " ".join(word for word in agent.split() if word.partition("=")[0] not in ASIDES)


def append_scores(path: Path, scores: Iterable[Score]) -> None:
    """Add rows to `path`, with the header where the file is new; all rows or none, and nothing to any other file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    size = None  # of the file as it was; None: not yet looked at
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        size = path.stat().st_size if path.exists() else 0
        if size == 0:
            writer.writerow(COLUMNS)
        else:
            _check_header(path)
        writer.writerows(map(_cells, scores))
        with open(path, "a", newline="") as file:
            file.write(text.getvalue())
    except OSError as error:
        if size is not None:
            with contextlib.suppress(OSError):
                os.truncate(path, size)
        raise unwritable(path, error) from None


def write_rows(file: io.TextIOBase, scores: Iterable[Score]) -> None:
    """A whole score file: the header and `scores`."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(_cells, scores))


def _cells(score: Score) -> list[object]:
    return [f"{value:.6g}" if isinstance(value, float) else value for value in dataclasses.astuple(score)]


def _check_header(path: Path) -> None:
    """An InputError unless the first line of `path` names our columns."""
    header = ",".join(COLUMNS)
    with open(path, "rb") as file:
        if file.readline().rstrip(b"\r\n") != header.encode():
            raise InputError(f"{path} is no score file; accepted: a new file, or a csv file with columns {header}")


def rows_so_far(path: Path) -> Sequence[Score]:
    """Of a file that may not be there yet, or empty since who would have begun it was killed."""
    return read_scores(path) if path.exists() and path.stat().st_size else ()


def read_scores(path: Path) -> Sequence[Score]:
    """The rows of a score file; an InputError names the line that is none."""
    types = get_type_hints(Score)
    try:
        with open(path, newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise InputError(f"{path} has columns {reader.fieldnames}; accepted: {','.join(COLUMNS)}")
            rows = []
            for row in reader:
                try:
                    if None in row or None in row.values() or row["split"] not in get_args(Split):
                        raise ValueError
                    cast = {name: types[name] if types[name] in (int, float) else str for name in COLUMNS}
                    rows.append(Score(**{name: cast[name](row[name]) for name in COLUMNS}))  # type: ignore[arg-type]
                except (TypeError, ValueError, KeyError):
                    raise InputError(f"{path} line {reader.line_num} is not a score row: {row}") from None
            return rows
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path} is not text; accepted: a csv file with columns {','.join(COLUMNS)}") from None
