"""Weights & Biases offline and MLflow in a local folder, after a run and after it was resumed."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from expgen.training.loggers import IDS_FILE, read_run_id, save_run_id
from tests.runs.rows import metrics


def test_run_ids_are_saved_and_read(tmp_path: Path) -> None:
    assert read_run_id(tmp_path, "wandb") is None
    save_run_id(tmp_path, "wandb", "abc-1")
    save_run_id(tmp_path, "mlflow", "f00")
    assert (read_run_id(tmp_path, "wandb"), read_run_id(tmp_path, "mlflow")) == ("abc-1", "f00")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"wandb": 3}', '{"wandb": "../../x"}', '{"wandb": null}', "[" * 9999])
def test_damaged_run_ids_are_ignored(text: str, tmp_path: Path) -> None:
    (tmp_path / IDS_FILE).write_text(text)
    assert read_run_id(tmp_path, "wandb") is None
    save_run_id(tmp_path, "wandb", "new")
    assert json.loads((tmp_path / IDS_FILE).read_text()) == {"wandb": "new"}


def test_mlflow_logs_all_rows_of_a_resumed_run(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # plain files, without a database
    run = tmp_path / "run"
    small.train(run, 2, log=["mlflow"], eval_every=small.update_steps)
    small.train(run, 3, log=["mlflow"], resume=True, eval_every=small.update_steps)
    client = mlflow.MlflowClient()
    (experiment,) = [each for each in client.search_experiments() if each.name == "expgen"]
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.run_name == "run" and found.info.status == "FINISHED"
    assert found.data.params["features"] == "16" and found.data.params["env"] == "minimaze"
    for name in ("policy_loss", "test_return"):
        history = {each.step: each.value for each in client.get_metric_history(found.info.run_id, f"member0/{name}")}
        assert history == pytest.approx({int(row["env_steps"]): float(row[name]) for row in metrics(run)}, rel=1e-4)


def log_records(content: bytes) -> Iterator[bytes]:
    """Yield the records of a .wandb file: a LevelDB log with 32 KiB blocks, after a header of 7 bytes."""
    at, part = 7, b""
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:  # no space for another header in this block
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack_from("<IHB", content, at)
        part += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a complete record, or its last part
            yield part
            part = b""


def test_wandb_offline_logs_all_rows(small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    from wandb.proto.wandb_internal_pb2 import Record

    for name, value in {"MODE": "offline", "DIR": str(tmp_path), "SILENT": "true", "CONSOLE": "off"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    run = tmp_path / "run"
    small.train(run, 2, log=["wandb"], eval_every=small.update_steps)
    (file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    rows, display_name = [], ""
    for data in log_records(file.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        if record.HasField("history"):
            items = record.history.item
            rows.append({item.key or item.nested_key[0]: json.loads(item.value_json) for item in items})
        if record.HasField("run"):
            display_name = record.run.display_name
    assert display_name == "run" and read_run_id(run, "wandb") == file.stem.removeprefix("run-")
    for name in ("policy_loss", "test_return"):
        curve = {row["member0/env_steps"]: row[f"member0/{name}"] for row in rows if f"member0/{name}" in row}
        assert curve == pytest.approx({int(row["env_steps"]): float(row[name]) for row in metrics(run)}, rel=1e-4)
