"""metrics.csv and TensorBoard: one row per learner and update, gathered once per rollout."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from expgen.errors import InputError
from expgen.training.checkpoint import write_whole

LEADING = ("learner", "env_steps", "seconds")


class MetricsFile:
    """A CSV that grows rows, and columns when a new metric appears."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.columns: list[str] = list(LEADING)
        if path.exists():
            with open(path, newline="") as file:
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
            raise InputError(f"cannot write {self.path}: {error.strerror}; accepted: a folder with space") from None

    def rows(self) -> list[dict[str, str]]:
        """Every whole row so far; a line cut short by a crash does not count."""
        if not self.path.exists():
            return []
        with open(self.path, newline="") as file:
            lines = [line for line in file if line.endswith("\n")]
        return [row for row in csv.DictReader(lines) if None not in row.values()]

    def forget_after(self, learner: str, env_steps: int) -> None:
        """Drop what `learner` reported past the checkpoint it resumes from: it will report it again."""
        if self.path.exists():
            rows = self.rows()
            self._rewrite([r for r in rows if r["learner"] != learner or int(r["env_steps"]) <= env_steps])

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        text = io.StringIO()
        writer = self._writer(text)
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self.path, text.getvalue().encode())

    def _writer(self, file: io.StringIO) -> "csv.DictWriter[str]":
        return csv.DictWriter(file, self.columns, restval="", lineterminator="\n")


class TensorBoardEvents:
    """One event stream per learner; nothing at all where TensorBoard is not installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.writers: dict[str, Any] = {}

    def start(self, learner: str, env_steps: int) -> None:
        """Open the stream of `learner`; events past `env_steps` of an earlier sitting no longer count."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            return
        self.writers[learner] = SummaryWriter(str(self.folder / learner), purge_step=env_steps + 1)

    def append(self, learner: str, row: Mapping[str, float]) -> None:
        """Add one row as scalars."""
        if writer := self.writers.get(learner):
            for name in row.keys() - {"env_steps"}:
                writer.add_scalar(name, row[name], int(row["env_steps"]))

    def close(self) -> None:
        for writer in self.writers.values():
            writer.close()


def _short(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"
