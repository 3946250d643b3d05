"""RunFolder: config, checkpoints and files of a run."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from expgen.envs.vec_env import EnvSpec
from expgen.errors import InputError
from expgen.runs.config import default_config
from expgen.runs.folder import RunFolder
from expgen.training.checkpoint import add_checkpoint

SPEC = EnvSpec("minimaze", (11, 11, 3), "uint8", 5)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "one")
    folder.write_config(default_config("ppo-gru"), SPEC)
    return folder


def test_config_and_spec_round_trip(folder: RunFolder) -> None:
    assert folder.exists() and not RunFolder(folder.path / "other").exists()
    assert folder.read_config() == (default_config("ppo-gru"), SPEC)


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere is no run folder: config\.json: No such file"):
        RunFolder(tmp_path / "nowhere").read_config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("\xff", "is not JSON"),
        ("[]", "accepted: a config.json that expgen wrote"),
        ("{}", "lacks 'spec'"),
        (json.dumps({"spec": {"name": "x"}, "train": {}}), "lacks 'obs_shape'"),
        (json.dumps({"spec": {"name": "x", "obs_shape": [1]}, "train": {}}), "accepted: a config.json that"),
    ],
)
def test_invalid_config_file_is_refused(folder: RunFolder, text: str, message: str) -> None:
    folder.config_file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        folder.read_config()


def test_learners_with_a_checkpoint_are_sorted_by_number(folder: RunFolder) -> None:
    assert folder.learners() == []
    for index in (10, 2, 0):
        add_checkpoint(folder.checkpoints_of(f"member{index}"), 1, {"x": torch.zeros(1)}, {"env_steps": index})
    folder.checkpoints_of("member1").mkdir()
    assert folder.learners() == ["member0", "member2", "member10"]


def test_files_of_a_finished_run(small: Any, tmp_path: Path) -> None:
    small.train(tmp_path, eval_every=10**9)
    names = {path.name for path in tmp_path.iterdir()}
    files = {"config.json", "agent.json", "metrics.csv", "scores.csv", "journal.json"}
    assert names == {*files, "tensorboard", "checkpoints"}
    assert not list(tmp_path.rglob("*.part"))
    assert len(list((tmp_path / "tensorboard" / "member0").glob("events.out.tfevents.*"))) == 1
