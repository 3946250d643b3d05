"""metrics.csv and TensorBoard: one row per learner and update, gathered once per rollout."""

import csv
import io
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from expgen.errors import unwritable
from expgen.files import open_regular, write_whole

LEADING = ("learner", "env_steps", "seconds")
TAIL_BYTES = 65_536  # some hundred rows


class MetricsFile:
    """A CSV that grows rows, and columns when a new metric appears."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: list[str] = list(LEADING)
        if path.exists():
            with io.TextIOWrapper(open_regular(path), newline="") as file:
                self.columns = next(csv.reader(file), list(LEADING))

    def append(self, learner: str, row: Mapping[str, float]) -> None:
        """Add one row; it is on its way to the disk when this returns."""
        new = [name for name in row if name not in self.columns]
        if new or not self.path.exists():
            rows = self.rows()
            self.columns += new
            self._rewrite(rows)
        line = io.StringIO()
        self._writer(line).writerow({"learner": learner, **{name: _short(value) for name, value in row.items()}})
        try:
            with open(self.path, "a", newline="") as file:
                file.write(line.getvalue())
        except OSError as error:
            raise unwritable(self.path, error) from None

    def rows(self) -> list[dict[str, str]]:
        """Every whole row so far; a line cut short by a crash does not count."""
        if not self.path.exists():
            return []
        with io.TextIOWrapper(open_regular(self.path), newline="") as file:
            lines = [line for line in file if line.endswith("\n")]
        return [row for row in csv.DictReader(lines) if None not in row.values()]

    def latest(self) -> dict[str, dict[str, float]]:
        """The last row of each learner among the last TAIL_BYTES, without reading the rest."""
        if not self.path.exists():
            return {}
        with open_regular(self.path) as file:
            columns = file.readline().decode().rstrip("\n").split(",")
            begin = file.tell()
            tail = file.seek(0, os.SEEK_END) - TAIL_BYTES
            file.seek(max(begin, tail))
            if tail > begin:
                file.readline()  # the rest of a line
            lines = file.read().decode(errors="replace").splitlines(keepends=True)
        found: dict[str, dict[str, float]] = {}
        for line in lines:
            cells = line.rstrip("\n").split(",")
            if line.endswith("\n") and len(cells) == len(columns) and cells[1].isdigit():
                named = zip(columns[1:], cells[1:], strict=True)
                found[cells[0]] = {name: float(cell) for name, cell in named if cell}
        return found

    def forget_after(self, learner: str, env_steps: int) -> None:
        """Drop what `learner` reported past the checkpoint it resumes from: it will report it again."""
        if self.path.exists():
            rows = self.rows()
            self._rewrite([r for r in rows if r["learner"] != learner or int(r["env_steps"]) <= env_steps])

    def complete(self, learner: str, env_steps: int, more: Mapping[str, float]) -> bool:
        """Add columns to a row that is there already, for values that took longer; whether it is there."""
        rows = self.rows()
        found = [r for r in rows if r["learner"] == learner and int(r["env_steps"]) == env_steps]
        if not found:
            return False
        self.columns += [name for name in more if name not in self.columns]
        found[-1] |= {name: _short(value) for name, value in more.items()}
        self._rewrite(rows)
        return True

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        text = io.StringIO()
        writer = self._writer(text)
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self.path, text.getvalue().encode(), new_folders=0)

    def _writer(self, file: io.StringIO) -> "csv.DictWriter[str]":
        return csv.DictWriter(file, self.columns, restval="", lineterminator="\n")


class TensorBoardEvents:
    """One event file per learner and sitting; nothing at all where TensorBoard is not installed.

    TensorBoard's own writer has a thread, in which a full disk ends in a traceback; so we write the records ourselves.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, BinaryIO] = {}

    def start(self, learner: str, env_steps: int) -> None:
        """Open the stream of `learner`; events past `env_steps` of an earlier sitting no longer count."""
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        except ImportError:
            return
        if before := self.files.pop(learner, None):
            before.close()
        folder = self.folder / learner
        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.files[learner] = open(folder / name, "wb", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise unwritable(folder / name, error) from None
        self._write(learner, Event(wall_time=time.time(), file_version="brain.Event:2"))
        restart = SessionLog(status=SessionLog.START)
        self._write(learner, Event(wall_time=time.time(), step=env_steps + 1, session_log=restart))

    def append(self, learner: str, row: Mapping[str, float]) -> None:
        """Add one row as scalars."""
        if learner in self.files:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary

            values = [Summary.Value(tag=tag, simple_value=row[tag]) for tag in row if tag != "env_steps"]
            step = int(row["env_steps"])
            self._write(learner, Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def close(self) -> None:
        for file in self.files.values():
            file.close()

    def _write(self, learner: str, event: Any) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        file = self.files[learner]
        try:
            file.write(record.getvalue())
        except OSError as error:
            raise unwritable(Path(file.name), error) from None


def _short(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"
