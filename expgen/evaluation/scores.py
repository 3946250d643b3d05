"""scores.csv: one row per agent, split and evaluation. Reports read only these rows and those of exploration.csv."""

import contextlib
import csv
import dataclasses
import errno
import fcntl
import io
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, get_type_hints

from expgen.agents.build import LoadedAgent
from expgen.envs.levels import SPLITS, LevelSet, Split
from expgen.errors import InputError, check_choice, check_writable, write_error
from expgen.evaluation.evaluate import Arena, Evaluation
from expgen.files import join_inside, read_bytes, write_atomic
from expgen.provenance import commit

Row = TypeVar("Row")


@dataclass(frozen=True)
class Score:
    """One row of `scores.csv`; the fields are the columns in order."""

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
    agent: str  # the learner, or the algorithm for a whole ensemble
    commit: str
    settings: str = ""  # settings that differ from the defaults of `agent`: `min_agree=6 members=10`

    def __post_init__(self) -> None:
        check_choice("split", self.split, SPLITS)
        if not math.isfinite(self.mean_return):  # other columns may be NaN
            raise InputError(f"the mean return of {self.agent} is {self.mean_return}; accepted: finite rewards")


def score_row(loaded: LoadedAgent, arena: Arena, split: Split, levels: LevelSet, evaluation: Evaluation) -> Score:
    """Return the row of scores.csv for an evaluation of `loaded` on `levels`."""
    return Score(
        algorithm=loaded.algo,
        game=arena.env.partition(":")[2] or arena.env,
        env=arena.env,
        seed=loaded.seed,
        split=split,
        levels=str(levels),
        env_steps=loaded.env_steps,
        agent=loaded.name,
        commit=commit(),
        settings=settings_text(loaded.settings),
        **{**evaluation._asdict(), "episodes": len(evaluation.episodes)},
    )


INFO_SETTINGS = ("members", "tuned")  # settings that describe an agent but do not make it another variant


def settings_text(settings: Mapping[str, Any]) -> str:
    """`{"min_agree": 6, "members": 10}` → `min_agree=6 members=10`."""
    return " ".join(f"{name}={value}" for name, value in settings.items())


def read_settings(text: str) -> dict[str, str]:
    """Parse `min_agree=6 members=10` into names and values."""
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def count_of(text: str) -> int:
    """Parse an integer of at most nine digits; return 0 for any other text."""
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def variant_settings(settings: str) -> str:
    """Return the settings that define a variant: `leader=3 members=10` → `leader=3`."""
    return " ".join(word for word in settings.split() if word.partition("=")[0] not in INFO_SETTINGS)


def agent_name(score: Score) -> str:
    """Return the agent's name followed by its settings."""
    return f"{score.agent} {score.settings}".strip()


class TableFile(Generic[Row]):
    """A CSV file with one dataclass instance per row, one column per field, and floats with six digits.

    Several processes can append to it: the file is rewritten under a lock. Files of earlier versions may lack the last
    columns, those with a default. `kind` is the dataclass, which validates its values; `name` is used in errors.
    """

    def __init__(self, kind: type[Row], name: str) -> None:
        self.kind, self.name = kind, name
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        self.columns = tuple(field.name for field in fields)
        self.old_columns = tuple(field.name for field in fields if field.default is dataclasses.MISSING)
        self.header = ",".join(self.columns)
        types = get_type_hints(kind)
        self.casts = {column: types[column] if types[column] in (int, float) else str for column in self.columns}

    def append(self, path: Path, rows: Sequence[Row]) -> None:
        """Append `rows`; if this fails, for example on a full disk, the file is unchanged."""
        if path.is_char_device():  # /dev/null
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _check_link(path)
            with _locked(path):
                write_atomic(path.resolve(), self.text([*self.rows_so_far(path), *rows]).encode())
        except OSError as error:
            raise write_error(path, error) from None

    def text(self, rows: Sequence[Row]) -> str:
        """Return the text of a file with the header and `rows`."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for row in rows:
            cells = dataclasses.astuple(row)  # type: ignore[call-overload]
            writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in cells])
        return text.getvalue()

    def check_can_append(self, path: Path) -> None:
        """Raise InputError if rows cannot be appended to `path`."""
        check_writable(path)
        _check_link(path)
        if path.exists() and not (path.is_file() or path.is_char_device()):  # reading a pipe would block
            raise InputError(f"{path} is not a regular file; accepted: a csv file with columns {self.header}")
        if not path.is_char_device():
            self.rows_so_far(path)

    def rows_so_far(self, path: Path) -> Sequence[Row]:
        """Return the rows of a file, none if it is missing or empty."""
        content = _read(path) if path.exists() else b""
        return [row for _, row in self._parsed(path, content)] if content else ()

    def numbered(self, path: Path) -> Sequence[tuple[int, Row]]:
        """Return the rows with the line number of each; raise InputError at the first invalid line."""
        return self._parsed(path, _read(path))

    def _parsed(self, path: Path, content: bytes) -> list[tuple[int, Row]]:
        try:
            reader = csv.DictReader(io.StringIO(content.decode(), newline=""))
            columns = tuple(reader.fieldnames or ())
            if columns not in (self.columns, self.old_columns):
                problem = f"{path} is not a file of {self.name} rows: it has columns {reader.fieldnames}"
                raise InputError(f"{problem}; accepted: {self.header}")
            rows = []
            for cells in reader:
                try:
                    if None in cells or None in cells.values():
                        raise ValueError
                    row = {column: self.casts[column](cells[column]) for column in columns}
                    rows.append((reader.line_num, self.kind(**row)))
                except (TypeError, ValueError, KeyError):
                    raise InputError(f"{path} line {reader.line_num} is not a {self.name} row: {cells}") from None
            return rows
        except (UnicodeDecodeError, csv.Error):
            raise InputError(f"{path} is not text; accepted: a csv file with columns {self.header}") from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`. Writers replace the file, so lock again if it was replaced while waiting."""
    while True:
        with open(path, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:  # a file system without locks: assume a single writer
                if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                    raise
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                yield
                return


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _check_link(path: Path) -> None:
    """Raise InputError for a symlink that leaves its folder, even if its target does not exist yet."""
    if path.is_symlink():
        join_inside(path.parent, path.name)


FILE = TableFile(Score, "score")
COLUMNS = FILE.columns
append_scores = FILE.append
check_can_append = FILE.check_can_append
rows_so_far = FILE.rows_so_far
numbered_scores = FILE.numbered


def read_scores(path: Path) -> Sequence[Score]:
    """Return the rows of a score file; raise InputError at the first invalid line."""
    return [row for _, row in FILE.numbered(path)]
