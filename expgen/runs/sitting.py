"""Sitting: who works on a run, and what became of it. One at a time: who comes later takes over.

On a cluster a machine may be taken for dead and still write. So every sitting puts a mark of its own into the run
folder and looks, each time before it writes, whether the mark is still there; who finds another's leaves the run alone.
"""

import contextlib
import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from typing import Any, Literal

from expgen.errors import FailedStorage, InputError, TakenOver
from expgen.files import JSON_BYTES, make_folder, read_bytes, sweep_parts, write_whole
from expgen.runs.folder import RunFolder

State = Literal["running", "done", "stopped", "diverged", "failed"]


class Sitting:
    """One process's time with a run."""

    def __init__(self, folder: RunFolder, mark: str | None = None) -> None:
        """`mark` is given to a worker process, which works for the sitting of its parent."""
        self.folder, self.mark = folder, mark or uuid.uuid4().hex
        self.began = time.time()

    def check(self) -> None:
        """TakenOver unless the run is still ours; FailedStorage where its folder was deleted."""
        if not self.folder.sitting_file.exists():
            raise FailedStorage(f"{self.folder.path} was deleted while it was being written; nothing more is saved")
        if read_sitting(self.folder).get("mark", self.mark) != self.mark:
            raise TakenOver(f"another process has taken over {self.folder.path}")

    def write(self, state: State, message: str = "") -> None:
        """Say what has become of the run; checked first, unless it begins."""
        if state != "running":
            self.check()
        facts = {
            "state": state, "message": message, "mark": self.mark, "host": socket.gethostname(), "pid": os.getpid(),
            "began": self.began,
        }  # fmt: skip
        write_whole(self.folder.sitting_file, (json.dumps(facts, indent=2) + "\n").encode(), new_folders=0)


@contextlib.contextmanager
def sitting(folder: RunFolder) -> Iterator[Sitting]:
    """Take the run over; where this ends in an error, the folder tells which."""
    seat = Sitting(folder)
    folder.check_entries()
    sweep_parts(folder.path)
    make_folder(folder.path)
    seat.write("running")
    try:
        yield seat
    except TakenOver:
        raise
    except BaseException as error:
        with contextlib.suppress(InputError, TakenOver):  # no space left for this line either, or no folder
            seat.write("failed", " ".join(f"{type(error).__name__}: {error}".split()))
        raise


def read_sitting(folder: RunFolder) -> dict[str, Any]:
    """What the last sitting says; nothing where there was none or it cannot be read."""
    try:
        facts = json.loads(read_bytes(folder.sitting_file, JSON_BYTES))
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
