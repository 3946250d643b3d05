"""TensorBoard events of a run, written as rows come."""

import io
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from expgen.errors import unwritable
from expgen.training.callbacks import Callback


class TensorBoardEvents(Callback):
    """One event file per learner and process; nothing at all where TensorBoard is not installed.

    TensorBoard's own writer has a thread, in which a full disk ends in a traceback; so we write the records ourselves.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, BinaryIO] = {}

    def on_learner(self, learner: str, env_steps: int) -> None:
        """Open the stream of `learner`; events of earlier processes past `env_steps` no longer count."""
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

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        """Add one row as scalars."""
        if learner in self.files:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary

            values = [Summary.Value(tag=tag, simple_value=row[tag]) for tag in row if tag != "env_steps"]
            step = int(row["env_steps"])
            self._write(learner, Event(wall_time=time.time(), step=step, summary=Summary(value=values)))

    def on_score(self, learner: str, env_steps: int, scores: Mapping[str, float]) -> None:
        self.on_update(learner, {"env_steps": env_steps, **scores})

    def on_end(self, state: str) -> None:
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
