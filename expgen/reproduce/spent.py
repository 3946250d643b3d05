"""Spent: how long a job has been worked on, over all sittings, kept beside its rows; a kill costs little of it."""

import json
import math
import sys
import time
from pathlib import Path

from expgen.files import write_whole

NOTE_SECONDS = 60.0  # of work that a kill may leave uncounted


class Spent:
    """Counts on from what earlier sittings have noted in `file`."""

    def __init__(self, file: Path, note_seconds: float = NOTE_SECONDS) -> None:
        self.file, self.note_seconds = file, note_seconds
        self.earlier = _read(file)
        self.began = self.noted = time.monotonic()

    @property
    def seconds(self) -> float:
        """Of earlier sittings and this one."""
        return self.earlier + time.monotonic() - self.began

    def note(self) -> None:
        """Keep how much it is by now."""
        self.noted = time.monotonic()
        write_whole(self.file, json.dumps({"seconds": round(self.seconds, 3)}).encode())

    def note_now_and_then(self) -> None:
        """As `note`, where the last time is long enough ago."""
        if time.monotonic() - self.noted >= self.note_seconds:
            self.note()


def _read(file: Path) -> float:
    if not file.exists():
        return 0.0
    try:
        seconds = float(json.loads(file.read_text())["seconds"])
        if not math.isfinite(seconds):
            raise ValueError(seconds)
        return seconds
    except (OSError, KeyError, TypeError, ValueError):
        print(f"expgen: {file} is damaged; time is counted from 0 again", file=sys.stderr)
        return 0.0
