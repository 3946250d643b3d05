"""TableFile: a csv file of rows that several processes may add to. It is rewritten whole, under a lock."""

import contextlib
import csv
import dataclasses
import errno
import fcntl
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar, get_type_hints

from expgen.errors import InputError, check_writable, unwritable
from expgen.files import join_inside, read_bytes, write_whole

Row = TypeVar("Row")


class TableFile(Generic[Row]):
    """How rows of one dataclass are kept: a column for each field, numbers with six digits."""

    def __init__(self, kind: type[Row], name: str) -> None:
        """`kind` is the dataclass, which checks its own values; `name` is what errors call a row and its file.

        Files of earlier versions may lack the last columns, those with a default.
        """
        self.kind, self.name = kind, name
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        self.columns = tuple(field.name for field in fields)
        self.old_columns = tuple(field.name for field in fields if field.default is dataclasses.MISSING)
        self.header = ",".join(self.columns)
        types = get_type_hints(kind)
        self.casts = {column: types[column] if types[column] in (int, float) else str for column in self.columns}

    def append(self, path: Path, rows: Sequence[Row]) -> None:
        """Add `rows`, or nothing where the disk is full."""
        if path.is_char_device():  # /dev/null keeps nothing
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _refuse_link(path)
            with _locked(path):
                write_whole(path.resolve(), self.text([*self.rows_so_far(path), *rows]).encode())
        except OSError as error:
            raise unwritable(path, error) from None

    def text(self, rows: Sequence[Row]) -> str:
        """A whole file: the header and `rows`."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        for row in rows:
            cells = dataclasses.astuple(row)  # type: ignore[call-overload]
            writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in cells])
        return text.getvalue()

    def check_can_append(self, path: Path) -> None:
        """An InputError where rows could not be added to `path`."""
        check_writable(path)
        _refuse_link(path)
        if path.exists() and not (path.is_file() or path.is_char_device()):  # of a pipe nothing would ever come
            raise InputError(f"{path} is no file; accepted: a new file, or a csv file with columns {self.header}")
        if not path.is_char_device():
            self.rows_so_far(path)

    def rows_so_far(self, path: Path) -> Sequence[Row]:
        """The rows of a file that may not be there yet, or be empty."""
        content = _read(path) if path.exists() else b""
        return [row for _, row in self._parsed(path, content)] if content else ()

    def numbered(self, path: Path) -> Sequence[tuple[int, Row]]:
        """The rows, each with the line that it ends on; an InputError names the line that is none."""
        return self._parsed(path, _read(path))

    def _parsed(self, path: Path, content: bytes) -> list[tuple[int, Row]]:
        try:
            reader = csv.DictReader(io.StringIO(content.decode(), newline=""))
            columns = tuple(reader.fieldnames or ())
            if columns not in (self.columns, self.old_columns):
                what = f"{path} is no {self.name} file: it has columns {reader.fieldnames}"
                raise InputError(f"{what}; accepted: {self.header}")
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
    """Nobody else adds to the file meanwhile. It is replaced, so who has waited looks again which file it is by now."""
    while True:
        with open(path, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
            except OSError as error:  # a file system without locks: one writer at a time is taken for granted
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


def _refuse_link(path: Path) -> None:
    """InputError for a link that leads out of its folder, as one without a target, which appending would create."""
    if path.is_symlink():
        join_inside(path.parent, path.name)
