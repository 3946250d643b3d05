"""Callbacks that log a run's rows: TensorBoard always, W&B and MLflow with `--log`.

W&B and MLflow read their usual environment variables (WANDB_MODE, WANDB_PROJECT, MLFLOW_TRACKING_URI,
MLFLOW_EXPERIMENT_NAME). A resumed run continues the same W&B or MLflow run, whose id is in `loggers.json`.
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

PROJECT = "expgen"  # default of WANDB_PROJECT and MLFLOW_EXPERIMENT_NAME
IDS_FILE = "loggers.json"
MLFLOW_MAX_PARAMS = 100  # per request


class RowLogger(Callback):
    """Logs scores as rows that hold only scores."""

    def on_score(self, learner: str, env_steps: int, scores: Mapping[str, float]) -> None:
        self.on_update(learner, {"env_steps": env_steps, **scores})


class TensorBoardEvents(RowLogger):
    """Writes one event file per learner and process; does nothing if TensorBoard is not installed.

    TensorBoard's own writer runs in a thread, where a full disk ends in a traceback, so this class writes the records.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, BinaryIO] = {}

    def on_learner(self, learner: str, env_steps: int) -> None:
        """Open the event file of `learner`; TensorBoard ignores earlier events past `env_steps`."""
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
    """One W&B run; each learner's metrics use its own steps as x-axis."""

    def __init__(self) -> None:
        self.run: Any = None

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        import wandb

        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=folder.name,
            id=read_run_id(folder, "wandb"),
            resume="allow",
            config=_without_unset(settings),
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
    """One MLflow run, with metric names such as `member0/episode_return`."""

    def __init__(self) -> None:
        self.client: Any = None
        self.run = ""

    def on_start(self, folder: Path, settings: Mapping[str, Any]) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self.client = MlflowClient()
        if saved_id := read_run_id(folder, "mlflow"):
            self.run = saved_id
            self.client.update_run(saved_id, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self.client.get_experiment_by_name(name)
        experiment_id = experiment.experiment_id if experiment else self.client.create_experiment(name)
        self.run = self.client.create_run(experiment_id, run_name=folder.name).info.run_id
        save_run_id(folder, "mlflow", self.run)
        params = [Param(name, str(value)) for name, value in _without_unset(settings).items()]
        for begin in range(0, len(params), MLFLOW_MAX_PARAMS):
            self.client.log_batch(self.run, params=params[begin : begin + MLFLOW_MAX_PARAMS])

    def on_update(self, learner: str, row: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now, step = int(time.time() * 1000), int(row["env_steps"])
        finite = {name: float(value) for name, value in row.items() if name != "env_steps" and math.isfinite(value)}
        metrics = [Metric(f"{learner}/{name}", value, now, step) for name, value in finite.items()]
        self.client.log_batch(self.run, metrics=metrics)

    def on_end(self, state: str) -> None:
        if self.run:
            status = {"done": "FINISHED", "stopped": "KILLED"}.get(state, "FAILED")
            self.client.set_terminated(self.run, status)


LOGGERS: dict[str, type[Callback]] = {"wandb": WandbLogger, "mlflow": MlflowLogger}


def check_loggers(names: Sequence[str]) -> None:
    """Raise InputError if a name is unknown, repeated or not installed."""
    each_once = f"--log is {names!r}; accepted: each of {', '.join(LOGGERS)} once"
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InputError(each_once)
    for name in names:
        check_choice("--log", name, LOGGERS)
        if names.count(name) > 1:
            raise InputError(each_once)
        if importlib.util.find_spec(name) is None:
            raise InputError(f"--log is {name}, which is not installed; accepted: pip install 'expgen[{name}]'")


def read_run_id(folder: Path, tool: str) -> str | None:
    """Return the id that `tool` gave the run in `folder`; None if it is missing or damaged."""
    try:
        run_id = read_json(folder / IDS_FILE)[tool]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return run_id if isinstance(run_id, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", run_id) else None


def save_run_id(folder: Path, tool: str, run_id: str) -> None:
    """Save the id that `tool` gave the run, for when the run is resumed."""
    run_ids = {name: run_id if name == tool else read_run_id(folder, name) for name in LOGGERS}
    content = json.dumps({name: known for name, known in run_ids.items() if known}) + "\n"
    write_atomic(folder / IDS_FILE, content.encode(), new_folders=0)


def _without_unset(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None and value != {}}
