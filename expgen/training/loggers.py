"""The rows of a run in the tools that people compare runs with: TensorBoard always, W&B and MLflow where asked for.

Where the latter two write is theirs to say (WANDB_MODE, WANDB_PROJECT, MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME). A
run that is resumed goes on in the tool too: `loggers.json` in its folder has its name there.
"""

import importlib.util
import io
import json
import math
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from expgen.errors import InputError, check_choice, write_error
from expgen.files import read_json, write_atomic
from expgen.training.callbacks import Callback

PROJECT = "expgen"  # where neither variable says otherwise
IDS_FILE = "loggers.json"
BATCH = 100  # settings that MLflow takes at once


class RowLogger(Callback):
    """Told of scores as of rows that have their columns alone."""

    def on_score(self, learner: str, env_steps: int, scores: Mapping[str, float]) -> None:
        self.on_update(learner, {"env_steps": env_steps, **scores})


class TensorBoardEvents(RowLogger):
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
            raise write_error(folder / name, error) from None
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
            raise write_error(Path(file.name), error) from None


class WandbLogger(RowLogger):
    """One W&B run; each learner's curves are drawn against its own steps."""

    def __init__(self) -> None:
        self.run: Any = None

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        import wandb

        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=folder.name,
            id=read_run_id(folder, "wandb"),
            resume="allow",
            config=_plain(settings),
            reinit="create_new",
        )
        save_run_id(folder, "wandb", self.run.id)

    def on_learner(self, learner: str, env_steps: int) -> None:
        self.run.define_metric(f"{learner}/*", step_metric=f"{learner}/env_steps")

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        self.run.log({f"{learner}/{name}": value for name, value in row.items()})

    def on_end(self, state: str) -> None:
        if self.run is not None:
            self.run.finish(exit_code=0 if state in ("done", "stopped") else 1)


class MlflowLogger(RowLogger):
    """One MLflow run, whose metrics are called `member0/episode_return`."""

    def __init__(self) -> None:
        self.client: Any = None
        self.run = ""

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self.client = MlflowClient()
        if known := read_run_id(folder, "mlflow"):
            self.run = known
            self.client.update_run(known, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self.client.get_experiment_by_name(name)
        number = experiment.experiment_id if experiment else self.client.create_experiment(name)
        self.run = self.client.create_run(number, run_name=folder.name).info.run_id
        save_run_id(folder, "mlflow", self.run)
        params = [Param(name, str(value)) for name, value in _plain(settings).items()]
        for begin in range(0, len(params), BATCH):
            self.client.log_batch(self.run, params=params[begin : begin + BATCH])

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now, step = int(time.time() * 1000), int(row["env_steps"])
        told = {name: value for name, value in row.items() if name != "env_steps" and math.isfinite(value)}
        metrics = [Metric(f"{learner}/{name}", float(value), now, step) for name, value in told.items()]
        self.client.log_batch(self.run, metrics=metrics)

    def on_end(self, state: str) -> None:
        if self.run:
            status = {"done": "FINISHED", "stopped": "KILLED"}.get(state, "FAILED")
            self.client.set_terminated(self.run, status)


LOGGERS: dict[str, type[Callback]] = {"wandb": WandbLogger, "mlflow": MlflowLogger}


def check_loggers(names: Sequence[str]) -> None:
    """InputError where one of them is unknown, named twice or not installed."""
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    for name in names if is_list else ():
        check_choice("--log", name, LOGGERS)
    if not is_list or len(set(names)) < len(names):
        raise InputError(f"--log is {names!r}; accepted: each of {', '.join(LOGGERS)} once")
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise InputError(f"--log is {name}, which is not installed; accepted: pip install 'expgen[{name}]'")


def read_run_id(folder: Path, tool: str) -> str | None:
    """By what name `tool` knows the run in `folder`; None where it does not, or the file is damaged."""
    try:
        found = read_json(folder / IDS_FILE)[tool]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", found) else None


def save_run_id(folder: Path, tool: str, name: str) -> None:
    """Remember it for when the run is resumed."""
    known = {each: read_run_id(folder, each) for each in LOGGERS}
    kept = {each: found for each, found in {**known, tool: name}.items() if found}
    write_atomic(folder / IDS_FILE, (json.dumps(kept) + "\n").encode(), new_folders=0)


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that are not set."""
    return {name: value for name, value in settings.items() if value is not None and value != {}}
