"""scores.csv: one row per agent, split and evaluation. Reports read these rows and nothing else."""

import contextlib
import csv
import dataclasses
import errno
import fcntl
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_type_hints

from expgen.errors import InputError, check_writable, unwritable
from expgen.files import join_inside, read_bytes

Split = Literal["train", "test"]
SPLITS: tuple[Split, Split] = ("train", "test")


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
HEADER = ",".join(COLUMNS).encode()
COMMIT = re.compile(r"[0-9a-f]{12}\+?|v\d.*|unknown")
ASIDES = ("members", "tuned")  # settings in `agent` that say more of it and make no variant


def without_asides(agent: str) -> str:
    """`agent` as the variant that it is: `expgen leader=3` for `expgen leader=3 members=10`."""
    return " ".join(word for word in agent.split() if word.partition("=")[0] not in ASIDES)


def append_scores(path: Path, scores: Iterable[Score]) -> None:
    """Add rows to `path`, with the header where the file is new; all rows or none, and nothing to any other file.

    A last line that a power cut tore is replaced by them. Who appends at the same time waits.
    """
    rows = [_cells(score) for score in scores]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _refuse_link(path)
        with open(path, "a+b", buffering=0) as file:
            _lock(file)
            before = _to_append_to(path)
            if not before:
                writer.writerow(COLUMNS)
            elif not before.endswith(b"\n"):
                text.write("\n")
            writer.writerows(rows)
            if file.seek(0, io.SEEK_END) > len(before):
                file.truncate(len(before))
            try:
                _write(file, text.getvalue().encode())
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(len(before))
                raise
    except OSError as error:
        raise unwritable(path, error) from None


def _lock(file: io.FileIO) -> None:
    """Until it is closed. Where the file system knows no locks, one writer at a time is taken for granted."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            raise


def _write(file: io.FileIO, content: bytes) -> None:
    while content:  # a full disk takes a part and refuses the rest
        content = content[file.write(content) :]


def check_can_append(path: Path) -> None:
    """An InputError where rows could not be added to `path`: to say so before they are made."""
    check_writable(path)
    try:
        _refuse_link(path)
        _to_append_to(path)
    except OSError as error:
        raise unwritable(path, error) from None


def _refuse_link(path: Path) -> None:
    """InputError for a link that leads out of its folder, as one without a target, which appending would create."""
    if path.is_symlink():
        join_inside(path.parent, path.name)


def write_rows(file: io.TextIOBase, scores: Iterable[Score]) -> None:
    """A whole score file: the header and `scores`."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(_cells, scores))


def _cells(score: Score) -> list[object]:
    if not math.isfinite(score.mean_return):  # what reads it would refuse the whole file
        raise InputError(f"the mean return of {score.agent} is {score.mean_return}; accepted: finite rewards")
    return [f"{value:.6g}" if isinstance(value, float) else value for value in dataclasses.astuple(score)]


def _to_append_to(path: Path) -> bytes:
    """What `path` holds already, less a torn line; an InputError unless its first line names our columns."""
    if not path.exists() or path.is_char_device():  # /dev/null keeps nothing
        return b""
    before = _whole_part(read_bytes(path)) if path.is_file() else b"no file"  # of a pipe nothing would ever come
    if before and before.splitlines()[0] != HEADER:
        accepted = f"a new file, or a csv file with columns {HEADER.decode()}"
        raise InputError(f"{path} is no score file; accepted: {accepted}")
    return before


def _whole_part(content: bytes) -> bytes:
    """`content` less what a power cut left of its last line: no line end and no row, or no whole header.

    A whole row without a line end stays: editors leave such files.
    """
    begin = content.rfind(b"\n") + 1
    last = content[begin:]
    if not begin:
        return b"" if HEADER.startswith(last) and last != HEADER else content
    try:
        rows = _parsed(Path(), HEADER + b"\n" + last)
    except InputError:
        return content[:begin]
    is_whole = last.endswith(b"\n") or all(COMMIT.fullmatch(row.commit) for _, row in rows)
    return content if rows and is_whole else content[:begin]


def rows_so_far(path: Path) -> Sequence[Score]:
    """Of a file that may not be there yet, or empty or torn since who wrote to it was killed."""
    content = _whole_part(_read(path)) if path.exists() else b""
    return [row for _, row in _parsed(path, content)] if content else ()


def read_scores(path: Path) -> Sequence[Score]:
    """The rows of a score file; an InputError names the line that is none."""
    return [row for _, row in numbered_scores(path)]


def numbered_scores(path: Path) -> Sequence[tuple[int, Score]]:
    """As `read_scores`, each row with the line that it ends on."""
    return _parsed(path, _read(path))


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _parsed(path: Path, content: bytes) -> Sequence[tuple[int, Score]]:
    types = get_type_hints(Score)
    cast = {name: types[name] if types[name] in (int, float) else str for name in COLUMNS}
    try:
        reader = csv.DictReader(io.StringIO(content.decode(), newline=""))
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path} has columns {reader.fieldnames}; accepted: {','.join(COLUMNS)}")
        rows = []
        for row in reader:
            try:
                if None in row or None in row.values() or row["split"] not in SPLITS:
                    raise ValueError
                if not math.isfinite(float(row["mean_return"])):  # other columns may be without a value
                    raise ValueError
                score = Score(**{name: cast[name](row[name]) for name in COLUMNS})  # type: ignore[arg-type]
                rows.append((reader.line_num, score))
            except (TypeError, ValueError, KeyError):
                raise InputError(f"{path} line {reader.line_num} is not a score row: {row}") from None
        return rows
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path} is not text; accepted: a csv file with columns {','.join(COLUMNS)}") from None
